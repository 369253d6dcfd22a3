"""The page to try it by hand, in a real browser."""

import base64
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from PIL import Image

import shortlist as sl
from shortlist.serving.app import make_app
from tests.reports.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")

# until a condition holds: the page asks the server and answers later
UNTIL = """new Promise((done, failed) => {{
  const end = Date.now() + 15000;
  (function look() {{
    if ({0}) done(true);
    else if (Date.now() > end) failed(new Error(document.body.innerText));
    else setTimeout(look, 20);
  }})();
}})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@contextmanager
def served(run: str, **options) -> Iterator[str]:
    """The address of a server in a thread of its own."""
    config = uvicorn.Config(make_app(sl.load_run(run), "leaves", **options), port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(10)


def labels(browser: Browser) -> list[str]:
    return browser.run("[...document.querySelectorAll('#labels li span:first-child')].map(one => one.textContent)")


def put(browser: Browser, selector: str, value: str) -> None:
    browser.run(
        f"(() => {{ const field = document.querySelector({selector!r}); field.value = {value!r};"
        "field.dispatchEvent(new Event('input', {bubbles: true}));"
        "field.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def test_a_pasted_row_is_answered_and_the_set_changes_with_k_and_alpha(browser: Browser, leaves) -> None:
    with served(leaves) as address:
        browser.open(address)
        browser.run(UNTIL.format("document.querySelectorAll('#columns input').length == 2"))
        put(browser, "#rule", "top-k-2")
        put(browser, "#paste", "7.5, south")
        browser.run(UNTIL.format("document.querySelectorAll('#labels li').length == 2"))
        assert labels(browser)[0] == "birch"
        put(browser, "#setting", "3")
        browser.run(UNTIL.format("document.querySelectorAll('#labels li').length == 3"))
        put(browser, "#rule", "conformal-0.1")
        put(browser, "#setting", "0.01")
        browser.run(UNTIL.format("document.querySelector('#promise').textContent.includes('99.0%')"))
        assert "on 60 rows" in browser.run("document.querySelector('#promise').textContent")
        put(browser, "#columns input", "long")
        browser.run(UNTIL.format("document.querySelector('#problem').textContent.includes('fitted with numbers')"))
        assert {request.split("/")[2] for request in browser.requests()} == {address.split("/")[2]}


def test_a_dropped_photo_is_answered(browser: Browser, photos) -> None:
    file = io.BytesIO()
    Image.new("RGB", (20, 20), "white").save(file, "png")
    with served(photos) as address:
        browser.open(address)
        browser.run(UNTIL.format("!document.querySelector('#drop').hidden"))
        browser.run(
            f"(() => {{ const bytes = Uint8Array.from(atob('{base64.b64encode(file.getvalue()).decode()}'), "
            "sign => sign.charCodeAt(0)); const files = new DataTransfer();"
            "files.items.add(new File([bytes], 'photo.png', {type: 'image/png'}));"
            "document.querySelector('#drop').dispatchEvent(new DragEvent('drop', {dataTransfer: files})); })()"
        )
        browser.run(UNTIL.format("document.querySelectorAll('#labels li').length == 1"))
        assert labels(browser)[0] in ("day", "night")
        assert browser.complaints() == []


def test_a_page_with_a_token_asks_for_it(browser: Browser, leaves) -> None:
    with served(leaves, token="secret") as address:
        browser.open(address)
        browser.run(UNTIL.format("!document.querySelector('#token-line').hidden"))
        put(browser, "#token", "secret")
        browser.run(UNTIL.format("document.querySelectorAll('#columns input').length == 2"))


def test_a_text_is_answered_as_it_is_written(browser: Browser, sayings: str) -> None:
    with served(sayings) as address:
        browser.open(address)
        browser.run(UNTIL.format("!document.querySelector('#words').hidden"))
        assert browser.run("document.querySelector('#row').hidden && document.querySelector('#drop').hidden")
        put(browser, "#text", "i am so happy, great")
        browser.run(UNTIL.format("document.querySelectorAll('#labels li').length === 1"))
        assert labels(browser) == ["joy"]
