"""Fetches a segment by tasks on other machines: one for each of its fetch lists, whose hosts are in
no other list.

    `taskfetch`     where the fetch is started: starts the tasks, moves what they bring into the
                    segment; on the other machines: fetches a list
    `taskchannel`   connects both: progress one way, orders the other

    <segment>/_fetch/begun                      how the fetch was begun
    <segment>/_fetch/part-r-NNNNN/              a list that is done: its part of each folder, and
                                                its `ledger`
    <segment>/_fetch/stopped-NNNNN/             the logs of a list that was stopped

A task works on its machine's own disk, as `fetch` does in a segment: its log is there, and a later
attempt at the same machine goes on from it. When all of its list is settled, the task writes its
part into a folder of its attempt, and renames that: the first attempt that comes so far is the one
that counts, and what is done stays done, whatever becomes of the other tasks or of who started
them. When all lists are done, their parts are moved into the segment.

A task that is stopped brings its logs into the segment, from where any machine goes on.
"""
