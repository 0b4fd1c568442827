"""Commands that Nutch runs by class name only.

Each is small and independent; `minutch CLASS` finds it in the table of flow.

    `adaptivefetchschedule`, `mimeadaptivefetchschedule`    simulate a schedule for one page
    `encodingdetector`, `textprofilesignature`              print charset and signature of files
    `resolveurls`, `urlutil`                                print hosts and domains of URLs
    `linkdumper`, `linkdumpreader`, `nodereader`, `loopreader`    dump and read a WebGraph
"""
