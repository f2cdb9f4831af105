"""The extension module: the simulator and the run folder, behind plain types."""

from os import PathLike
from pathlib import Path
from typing import TypedDict, final

VERSION: str

class AnabranchError(Exception): ...
class ScenarioError(AnabranchError): ...
class OutputError(AnabranchError): ...
class RunError(AnabranchError): ...
class RunFolderError(AnabranchError): ...
class Cancelled(AnabranchError): ...

class Parameter(TypedDict):
    name: str
    default: str
    min: str
    max: str
    doc: str

class Algorithm(TypedDict):
    name: str
    title: str
    kind: str
    coupled: bool
    hosts: list[str]
    tag: str
    params: list[Parameter]

class Named(TypedDict):
    name: str
    title: str

class Outcome(TypedDict):
    path: Path
    reused: bool
    damaged: str | None

class SeriesColumns(TypedDict):
    connection: str | None
    subflow: str | None
    link: str | None
    metric: str
    times_s: bytes
    values: bytes

def list_algorithms() -> list[Algorithm]: ...
def list_schedulers() -> list[Named]: ...
def list_path_managers() -> list[Named]: ...
def list_links() -> list[Named]: ...
def open_run(path: str | PathLike[str]) -> str: ...
def export_packets(
    run: str | PathLike[str], host: str | None, to: str | PathLike[str]
) -> tuple[str, int]: ...
def read_series(path: str | PathLike[str]) -> list[SeriesColumns]: ...

@final
class Control:
    def __new__(cls) -> Control: ...
    def cancel(self) -> None: ...
    @property
    def reached_s(self) -> float: ...

@final
class Scenario:
    def __new__(cls, path: str | PathLike[str], overrides: list[tuple[str, str]]) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def canonical(self) -> str: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def counts(self) -> list[tuple[str, int]]: ...
    @property
    def key(self) -> str: ...
    def run(
        self, seed: int, root: str | PathLike[str], force: bool, files: list[str], control: Control
    ) -> Outcome: ...
