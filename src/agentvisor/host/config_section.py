"""What every part of the configuration's tree is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the tree: unknown keys are refused, values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
