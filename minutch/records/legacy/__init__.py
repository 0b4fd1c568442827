"""The records of Nutch 0.4 to 0.7, when segments were ArrayFiles.

They follow Nutch's page on its formats, field by field; where that is silent, the first version in
Apache's repository (March 2005, before 0.7), and the docstring of the record says so. Their classes
were `net.nutch.…`, from 2005 on some of them `org.apache.nutch.…`; files mostly have short names
like `FetchListEntry`, and `minutch.records` knows all of them. Begin with fields.

    `fields`                             what the records are made of
    `page`, `fetchlistentry`             a page of the web database, an entry of a fetch list
    `fetcheroutput`, `content`, `parse`  how a fetch ended, the page, what was found in it
"""
