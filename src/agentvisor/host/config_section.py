"""What every part of the configuration's tree is."""

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator


class Section(BaseModel):
    """A part of the tree: unknown keys are refused, values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: object, info: ValidationInfo) -> object:
        # YAML reads yes and on as true, and pydantic true as 1: a port would be 1.
        if isinstance(value, bool) and info.field_name and cls.model_fields[info.field_name].annotation is int:
            raise ValueError(f"must be a whole number, not {str(value).lower()}")
        return value
