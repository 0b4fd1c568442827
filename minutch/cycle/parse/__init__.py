"""parse: text, metadata, links and signature of fetched pages.

Everything fetched is hostile, so pages are parsed in processes of their own. Begin with
parsesegment, then pageparser, which takes one page through all steps.

    `parsesegment`                                the job
    `workerpool`, `workerprocess`                 worker processes and what passes between
    `sandbox`                                     what a worker may not do
    `pageparser`, `dispatch`                      one page; which parser it is given to
    `pagecheck`                                   fetches and parses one page, for the checkers
    `chunks`                                      cuts a page's Markdown for retrieval
    `charset`                                     the charset of a page, the text of XML
    `robotsdirectives`                            what a page forbids, and its header
    `mime`, `mimerules`                           its media type
    `outlinks`, `linkverdicts`                    which links are kept
    `signature`, `simhash`                        which pages are the same, or nearly
    `pagerecords`, `partwriters`                  the records of a page, and their part files
"""
