"""The records of Nutch 0.4 to 0.7, when segments were ArrayFiles: field by field as Nutch's page on
its formats says.

Their classes were `net.nutch.…`, from 2005 on some of them `org.apache.nutch.…`, and in files
mostly short names like `FetchListEntry`; `minutch.records` knows all of them. Where that page is
silent, the first version in Apache's repository (March 2005, before 0.7) decides, and the docstring
of the record says so.
"""
