"""The weights of a reference module from trial to trial."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from egg.evaluation.correctness.draws import integer_state, redraw_state
from egg.evaluation.correctness.trials import TrialKind

State = dict[str, torch.Tensor]


class Weights:
    """Says which state_dict each trial starts from. The module is used to draw in, and left in that state."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self.pristine = copied(module.state_dict())
        """What the constructor gave."""
        self._state = self.pristine
        self._left: State | None = None

    def for_trial(self, trial: TrialKind, seed: int) -> State:
        """Returns the state of a trial; new weights stay for the trials after it, whole numbers do not."""
        if trial.values == "integers":
            return self._drawn(lambda: integer_state(self._module, seed))
        if trial.state == "continued" and self._left is not None:
            return self._left
        if trial.state == "redrawn":
            self._state = self._drawn(lambda: redraw_state(self._module, seed))
        return self._state

    @property
    def now(self) -> State:
        """Those of the last trial that had none of its own alone."""
        return self._state

    def rewind(self) -> None:
        """Goes back to what the constructor gave."""
        self._state = self.pristine

    def left(self, leaves: dict[str, Any]) -> None:
        """Takes down what a call left in the module."""
        self._left = {k: leaves[f"buffer {k}"] for k in self.pristine}

    def _drawn(self, draw: Any) -> State:
        self._module.load_state_dict(self.pristine)
        draw()
        return copied(self._module.state_dict())


def copied(state: State) -> State:
    """Returns a state_dict in memory of its own."""
    return {k: v.detach().clone() for k, v in state.items()}
