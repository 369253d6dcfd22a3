"""The blocks of `linear_loss`, which ``torch.compile`` leaves as they are. To say so imports the whole compiler, for
seconds: this module is imported by the first call, and not by every command that starts."""

import torch

from shortlist.functional.linear_loss import _by_blocks

by_blocks = torch.compiler.disable(_by_blocks)
