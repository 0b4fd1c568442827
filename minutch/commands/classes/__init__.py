"""Commands that Nutch runs by the names of their classes alone.

Each is small and stands for itself; `minutch CLASS` finds it by the table in flow.

    `adaptivefetchschedule`, `mimeadaptivefetchschedule`    a schedule at work on one page
    `encodingdetector`, `textprofilesignature`              charset and signature of files
    `resolveurls`, `urlutil`                                hosts and domains of URLs
    `linkdumper`, `linkdumpreader`, `nodereader`, `loopreader`    a WebGraph, looked into
"""
