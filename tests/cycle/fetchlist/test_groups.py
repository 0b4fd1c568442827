"""Which hosts are of one domain."""

from __future__ import annotations

import polars as pl

from minutch.cycle.fetchlist.allowances import NAMES, domains_in


def test_hosts_of_one_domain() -> None:
    alone = ["solo.org", "x.co.uk", "y.co.uk", "localhost", "10.0.0.1", "11.0.0.1"]
    names = ["fine.com", "b.fine.com", "c.d.fine.com", "a.z.co.uk", "b.z.co.uk", *alone]
    rows = [(number, number != 1, name) for number, name in enumerate(names)]
    found = domains_in(pl.DataFrame(rows, schema=NAMES, orient="row"), 7)
    domains = dict(found.select("host", "domain").iter_rows())
    assert sorted(domains) == [0, 1, 2, 3, 4]
    assert domains[0] == domains[1] == domains[2] != domains[3] == domains[4]
    assert found["is_asked"].to_list() == [True, False, True, True, True]
    other = domains_in(pl.DataFrame(rows, schema=NAMES, orient="row"), 8)
    assert other["domain"][0] != found["domain"][0]
