"""org.apache.nutch.hostdb.HostDatum: what the HostDb knows about one host.

    float score | long last check (ms) | VInt n, n bytes of the home page's URL |
    long DNS failures | long connection failures | long unfetched | fetched | not modified |
    redirected temporarily | redirected permanently | gone | MapWritable

Source: HostDatum.readFields and write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from minutch.hadoop.formats import javahash
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import MapWritable, Writable

COUNTS: Final = (
    *("dns_failures", "connection_failures"),
    *("unfetched", "fetched", "not_modified", "redir_temp", "redir_perm", "gone"),
)
"""The eight numbers, in the order of the record."""


@dataclass(slots=True)
class HostDatum(Writable):
    """Counts of a host's URLs by state, failures, and metadata."""

    class_name = "org.apache.nutch.hostdb.HostDatum"
    score: float = 0.0
    last_check: int = 0
    homepage_url: str = ""
    dns_failures: int = 0
    connection_failures: int = 0
    unfetched: int = 0
    fetched: int = 0
    not_modified: int = 0
    redir_temp: int = 0
    redir_perm: int = 0
    gone: int = 0
    metadata: MapWritable = field(default_factory=MapWritable)

    @property
    def num_failures(self) -> int:
        return self.dns_failures + self.connection_failures

    @property
    def num_records(self) -> int:
        return (
            self.unfetched
            + self.fetched
            + self.gone
            + self.redir_perm
            + self.redir_temp
            + self.not_modified
        )

    @classmethod
    def read(cls, data: DataInput) -> Self:
        score, last_check, homepage = data.read_float(), data.read_long(), data.read_text()
        result = cls(score, last_check, homepage, *(data.read_long() for _ in range(8)))  # type: ignore[arg-type]
        result.metadata = MapWritable.read(data)
        return result

    def write(self, out: DataOutput) -> None:
        out.write_float(self.score)
        out.write_long(self.last_check)
        out.write_text(self.homepage_url)
        out.write_long(self.dns_failures)
        out.write_long(self.connection_failures)
        for count in (
            self.unfetched,
            self.fetched,
            self.not_modified,
            self.redir_temp,
            self.redir_perm,
            self.gone,
        ):
            out.write_long(count)
        self.metadata.write(out)

    def __str__(self) -> str:
        counts = (
            self.unfetched,
            self.fetched,
            self.gone,
            self.redir_temp,
            self.redir_perm,
            self.not_modified,
        )
        failures = (
            self.num_records,
            self.dns_failures,
            self.connection_failures,
            self.num_failures,
        )
        fields = [
            *map(str, counts + failures),
            javahash.float_to_string(self.score),
            javahash.date_time_to_string(self.last_check),
            self.homepage_url,
        ]
        return (
            "\t".join(fields)
            + "\t"
            + "".join(f"{key}:{value}|||" for key, value in self.metadata.java_items())
        )
