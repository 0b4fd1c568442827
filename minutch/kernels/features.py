"""What a page's blocks are judged by: some numbers for each, out of the tables that `blocks` makes,
and the sum of a forest's trees over them.

Trees ask in which order values are, and so all are as they are counted: words, not their logarithm;
weights of tokens in steps of their own. Shares are of at least 1.
"""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.blocks import (
    BLOCKS_AT,
    BLOCKS_END,
    BOX,
    CAPITALS,
    CHARACTERS,
    DEPTH,
    LINK_WORDS,
    LINKS,
    OUTER,
    OWNER,
    SHAPE,
    STOPS,
    TAG,
    TEXT_END,
    TOKEN,
    WORDS,
)
from minutch.kernels.memory import load32, scratch64
from minutch.kernels.native import (
    F32,
    I8,
    I32,
    I64,
    U8,
    U64,
    F32Rows,
    I64Rows,
    Int,
    Word,
    inlined,
    inner,
    int64,
    kernel,
    uint64,
)

REACH = 12
"""Boxes around a block that are looked at."""
LEVELS, CARD_LEVELS = 6, 8
"""Those of them that are looked at one by one, or may be cards."""
GROUPS = 9
"""Of tags, a bit each, the first ones below."""
ARTICLE, MAIN, ROOT = 4, 3, GROUPS
HEADING = GROUPS + 1
"""Above all bits: the level of a heading."""
OWN, NAMES, PLACE, NEAR, AROUND, TEXTS, CARDS, ALIKE, PAGE, KINDS = (
    *(0, 19, 38, 52, 56, 70, 82, 89, 92, 102),
)
"""Where the features of a kind begin."""
SUM, LEAST, MOST = range(3)
"""Of the weights of a box's tokens, of a block's first words (SAID) and inline elements (WITHIN);
0 counts, too.
"""
FIRST_CARD, CARD_COUNT, CARD_WORDS, CARD_LINKED, BOX_SUMS = range(3, 8)
SAID, WITHIN, FIRST_ALIKE, ALIKE_COUNT, ALIKE_WORDS, BEFORE, LINKED, TEXT, BLOCK_SUMS = (
    *(0, 3, 6, 7, 8, 9, 10, 11, 12),
)
"""BEFORE, LINKED, TEXT: the words, those of links and those of longer texts in all blocks before
one; there is one block more, the end.
"""
TEXT_WORDS, TEXT_LINKAGE = 10, 0.4
"""A longer text has so many words, and a smaller share in links."""


OF_HEADING = (8, NAMES + 2, NAMES + 3, NAMES + 5)
"""Features that the blocks below a heading have, too; the first two also the block after."""
FEATURES = KINDS + 7
TREES_AT_ONCE = 4
AT_ONCE = 64
"""Columns whose features are kept near; a feature's keys have 256 bytes."""
FEATURE_AT, NEXT_AT, THRESHOLD_AT = 8, 16, 32
"""Where the parts of a node's word begin; what is below them is 0."""
MOST_NODES = 0xFFFF
_FEATURE, _NEXT_AT = uint64(0xFF << FEATURE_AT), uint64(NEXT_AT)
MINUS = -1 << 31


class PageTables(NamedTuple):
    """The fields of a page, as `blocks` leaves it."""

    text: U8
    boxes: I64Rows
    blocks: I64Rows
    tokens: I64Rows
    words: I64Rows


class Sums(NamedTuple):
    """The fields of what is summed up: of boxes, of blocks; `slots` is a table of hashes, its size
    a power of 2 that is greater than twice the number of either.
    """

    boxes: I64Rows
    blocks: I64Rows
    slots: I64


class Trees(NamedTuple):
    """The fields of a forest, whose number of trees is a multiple of TREES_AT_ONCE.

    A node's word has its feature, the node that it leads to where that is at most its threshold
    (else the node after that), and the threshold, as an integer in the order of floats. A leaf,
    whose threshold is infinite, leads to itself. There are MOST_NODES at most.
    """

    roots: I32
    depths: I32
    nodes: U64
    value: F32


@inlined
def share(value: Int, whole: Int) -> float:
    """Which part of a whole something is."""
    return value / max(whole, 1)


@inner
def weigh(sums: I64, at: Int, weight: Int) -> None:
    """Add the weight of a token to SUM, LEAST and MOST."""
    sums[at + SUM] += weight
    sums[at + LEAST] = min(sums[at + LEAST], weight)
    sums[at + MOST] = max(sums[at + MOST], weight)


@inner
def sum_tokens(page: PageTables, weights: I8, sums: Sums) -> None:
    """Sum up the weights of what boxes and blocks are called by."""
    sums.boxes[:] = 0
    sums.blocks[:] = 0
    for i in range(page.tokens.shape[0]):
        owner, weight = page.tokens[i, OWNER], int64(weights[page.tokens[i, TOKEN]])
        if owner >= 0:
            weigh(sums.boxes[owner], 0, weight)
        else:
            weigh(sums.blocks[-1 - owner], WITHIN, weight)
    for i in range(page.words.shape[0]):
        owner, weight = page.words[i, OWNER], int64(weights[page.words[i, TOKEN]])
        weigh(sums.blocks[owner], SAID, weight)


@inner
def sum_words(blocks: I64Rows, sums: I64Rows) -> None:
    """Sum up the words before each block."""
    for i in range(blocks.shape[0]):
        words, linked = blocks[i, WORDS], blocks[i, LINK_WORDS]
        is_text = words >= TEXT_WORDS and linked / words < TEXT_LINKAGE
        sums[i + 1, BEFORE] = sums[i, BEFORE] + words
        sums[i + 1, LINKED] = sums[i, LINKED] + linked
        sums[i + 1, TEXT] = sums[i, TEXT] + (words if is_text else 0)


@inlined
def path_of(page: PageTables, block: Int) -> Int:
    """The shapes of the three boxes around a block."""
    path, box = int64(0), page.blocks[block, BOX]
    for _ in range(3):
        path = path * 31 + page.boxes[box, SHAPE]
        box = max(page.boxes[box, OUTER], 0)
    return path


@inlined
def place_of(code: Int, slots: I64) -> Int:
    """Where the search for a hash begins."""
    return ((code ^ code >> 15) * 0x9E3779B1 >> 7) & (slots.size - 1)


@inner
def find_cards(page: PageTables, sums: Sums) -> None:
    """Boxes of one shape in the same box are cards."""
    boxes, slots = page.boxes, sums.slots
    slots[:] = -1
    for i in range(boxes.shape[0]):
        outer, shape = boxes[i, OUTER], boxes[i, SHAPE]
        place = place_of(outer << 20 ^ shape, slots)
        while slots[place] >= 0 and (
            boxes[slots[place], OUTER] != outer or boxes[slots[place], SHAPE] != shape
        ):
            place = (place + 1) & (slots.size - 1)
        if slots[place] < 0:
            slots[place] = i
        first, start, end = slots[place], boxes[i, BLOCKS_AT], boxes[i, BLOCKS_END]
        sums.boxes[i, FIRST_CARD] = first
        sums.boxes[first, CARD_COUNT] += 1 if end > start else 0
        sums.boxes[first, CARD_WORDS] += sums.blocks[end, BEFORE] - sums.blocks[start, BEFORE]
        sums.boxes[first, CARD_LINKED] += sums.blocks[end, LINKED] - sums.blocks[start, LINKED]


@inner
def find_alike(page: PageTables, sums: Sums) -> None:
    """Blocks of one path may be anywhere."""
    slots = sums.slots
    slots[:] = -1
    for i in range(page.blocks.shape[0]):
        path = path_of(page, i)
        place = place_of(path, slots)
        while slots[place] >= 0 and path_of(page, slots[place]) != path:
            place = (place + 1) & (slots.size - 1)
        if slots[place] < 0:
            slots[place] = i
        sums.blocks[i, FIRST_ALIKE] = slots[place]
        sums.blocks[slots[place], ALIKE_COUNT] += 1
        sums.blocks[slots[place], ALIKE_WORDS] += page.blocks[i, WORDS]


@inner
def own_features(page: PageTables, i: Int, inside: Int, level: Int, rows: F32Rows) -> None:
    """What is counted in a block, and the groups of the tags around it."""
    block = page.blocks[i]
    words, characters = block[WORDS], block[CHARACTERS]
    last = page.text[block[TEXT_END] - 1]
    rows[0, i], rows[1, i], rows[2, i] = words, characters, block[LINK_WORDS] / words
    rows[3, i], rows[4, i] = block[LINKS], block[STOPS] / words
    rows[5, i], rows[6, i] = share(block[CAPITALS], characters), characters / words
    rows[7, i] = 1 if last == 46 or last == 33 or last == 63 else 0  # noqa: PLR1714 - for Numba
    rows[8, i], rows[9, i] = level, page.boxes[block[BOX], DEPTH]
    for group in range(GROUPS):
        rows[10 + group, i] = inside >> group & 1


@inner
def name_features(i: Int, sums: Sums, around: I64, is_root: I64, rows: F32Rows) -> None:
    """What the page's own names say of a block and of the boxes around it."""
    own = sums.blocks[i]
    rows[NAMES, i], rows[NAMES + 1, i] = own[WITHIN + SUM], own[WITHIN + LEAST]
    for kind in range(3):
        rows[NAMES + 2 + kind, i] = own[SAID + kind]
    whole = least_at = most_at = int64(0)
    greatest, least, most = int64(-1 << 40), int64(1), int64(-1)  # the first level sets each
    for level in range(REACH):
        box = sums.boxes[around[level]]
        names, low, high = (box[SUM], box[LEAST], box[MOST]) if not is_root[level] else (0, 0, 0)
        whole += names
        greatest = max(greatest, names)
        if low < least:
            least, least_at = low, level
        if high > most:
            most, most_at = high, level
        if level < 2:
            rows[NAMES + 11 + level, i] = names
        if level < 4:
            rows[NAMES + 13 + level, i] = low
        if 0 < level < 3:
            rows[NAMES + 16 + level, i] = high
    rows[NAMES + 5, i], rows[NAMES + 6, i] = whole, greatest
    rows[NAMES + 7, i], rows[NAMES + 8, i] = least, least_at
    rows[NAMES + 9, i], rows[NAMES + 10, i] = most, most_at


@inner
def place_features(i: Int, sums: I64Rows, title: Int, heading: Int, rows: F32Rows) -> None:
    """Where in the page a block stands: after which title and heading, among what."""
    count = rows.shape[1]
    total, before = sums[count, BEFORE], sums[i, BEFORE]
    rows[PLACE, i], rows[PLACE + 1, i] = i / count, share(before, total)
    rows[PLACE + 2, i], rows[PLACE + 3, i] = before, total - sums[i + 1, BEFORE]
    rows[PLACE + 4, i] = min(max(i - title, -50), 50) if title >= 0 else -99  # out of their range
    rows[PLACE + 5, i] = before - sums[title, BEFORE] if title >= 0 else 0
    rows[PLACE + 6, i] = min(i - heading, 60) if heading >= 0 else -1
    for k, feature in enumerate(OF_HEADING):
        rows[PLACE + 7 + k, i] = rows[feature, heading] if heading >= 0 else 0
        if k < 2:
            rows[PLACE + 11 + k, i] = rows[feature, i - 1] if i > 0 else 0
    rows[PLACE + 13, i] = sums[i + 2, BEFORE] - sums[i + 1, BEFORE] if i + 1 < count else 0
    for k, reach in enumerate((3, 8)):
        start, end = max(i - reach, 0), min(i + reach + 1, count)
        words = sums[end, BEFORE] - sums[start, BEFORE]
        rows[NEAR + 2 * k, i] = words
        rows[NEAR + 2 * k + 1, i] = share(sums[end, LINKED] - sums[start, LINKED], words)


@inner
def box_features(page: PageTables, i: Int, sums: Sums, around: I64, rows: F32Rows) -> None:
    """What the boxes around a block hold."""
    boxes, of_boxes, of_blocks = page.boxes, sums.boxes, sums.blocks
    count = page.blocks.shape[0]
    total, long = of_blocks[count, BEFORE], of_blocks[count, TEXT]
    level_40 = level_70 = int64(REACH - 1)
    for level in range(REACH - 1, -1, -1):
        start, end = boxes[around[level], BLOCKS_AT], boxes[around[level], BLOCKS_END]
        texts = share(of_blocks[end, TEXT] - of_blocks[start, TEXT], long)
        if texts >= 0.4:
            level_40 = level
        if texts >= 0.7:
            level_70 = level
        if level < LEVELS:
            words = of_blocks[end, BEFORE] - of_blocks[start, BEFORE]
            rows[AROUND + level, i] = texts
            if level == 0 or level == 3 or level == 5:  # noqa: PLR1714 - for Numba
                rows[AROUND + 6 + level // 2, i] = share(words, end - start)
            if level == 2 or level == 3:  # noqa: PLR1714 - for Numba
                linked = of_blocks[end, LINKED] - of_blocks[start, LINKED]
                rows[AROUND + 7 + level, i] = share(linked, words)
            if level & 1:
                rows[AROUND + 11 + level // 2, i] = words
    for k, level in enumerate((level_40, level_70)):
        box = around[level]
        start, end = boxes[box, BLOCKS_AT], boxes[box, BLOCKS_END]
        words = of_blocks[end, BEFORE] - of_blocks[start, BEFORE]
        linked = of_blocks[end, LINKED] - of_blocks[start, LINKED]
        before = of_blocks[i, BEFORE] - of_blocks[start, BEFORE]
        at = TEXTS + 6 * k
        rows[at, i], rows[at + 1, i], rows[at + 2, i] = (
            level,
            share(words, total),
            share(linked, words),
        )
        rows[at + 3, i], rows[at + 4, i] = boxes[box, DEPTH], of_boxes[box, SUM]
        rows[at + 5, i] = share(before, words)


@inner
def card_features(
    page: PageTables, i: Int, sums: Sums, around: I64, is_root: I64, rows: F32Rows
) -> None:
    """Whether a block is in one of many boxes that are alike."""
    of_boxes, own = sums.boxes, sums.blocks[sums.blocks[i, FIRST_ALIKE]]
    total = sums.blocks[page.blocks.shape[0], BEFORE]
    most, box = int64(-1), int64(0)
    for level in range(CARD_LEVELS):
        found = (
            of_boxes[of_boxes[around[level], FIRST_CARD], CARD_COUNT] if not is_root[level] else 0
        )
        if found > most:
            most, box = found, around[level]
    first = of_boxes[of_boxes[box, FIRST_CARD]]
    rows[CARDS, i] = of_boxes[of_boxes[around[0], FIRST_CARD], CARD_COUNT]
    rows[CARDS + 1, i], rows[CARDS + 2, i] = most, first[CARD_WORDS]
    rows[CARDS + 3, i] = share(first[CARD_LINKED], first[CARD_WORDS])
    rows[CARDS + 4, i] = share(first[CARD_WORDS], first[CARD_COUNT])
    rows[CARDS + 5, i], rows[CARDS + 6, i] = share(first[CARD_WORDS], total), of_boxes[box, SUM]
    rows[ALIKE, i], rows[ALIKE + 1, i] = own[ALIKE_COUNT], own[ALIKE_WORDS] / own[ALIKE_COUNT]
    rows[ALIKE + 2, i] = share(own[ALIKE_WORDS], total)


@inner
def page_features(page: PageTables, tags: I64, kinds: F32, sums: Sums, rows: F32Rows) -> None:
    """What is the same for all blocks."""
    count, boxes = page.blocks.shape[0], page.boxes
    end = sums.blocks[count]
    total = end[BEFORE]
    names = articles = headings = in_article = in_main = int64(0)
    for i in range(boxes.shape[0]):
        bits = tags[boxes[i, TAG]]
        articles += bits >> ARTICLE & 1
        names += sums.boxes[i, SUM] if bits >> ROOT & 1 else 0
    for i in range(count):  # rows that `own_features` has filled
        words = page.blocks[i, WORDS]
        headings += 1 if rows[8, i] > 0 else 0
        in_article += words if rows[10 + ARTICLE, i] > 0 else 0
        in_main += words if rows[10 + MAIN, i] > 0 else 0
    for i in range(count):
        rows[PAGE, i], rows[PAGE + 1, i] = total, count
        rows[PAGE + 2, i], rows[PAGE + 3, i] = share(end[LINKED], total), share(end[TEXT], total)
        rows[PAGE + 4, i], rows[PAGE + 5, i] = names, share(in_article, total)
        rows[PAGE + 6, i], rows[PAGE + 7, i] = share(in_main, total), articles
        rows[PAGE + 8, i], rows[PAGE + 9, i] = headings, total / count
        for kind in range(kinds.size):
            rows[KINDS + kind, i] = kinds[kind]


@kernel
def describe(
    page: PageTables, tags: I64, weights: I8, kinds: F32, sums: Sums, rows: F32Rows
) -> None:
    """Fill `rows`, a row a feature and a column a block.

    `tags` has for a tag its groups, ROOT and HEADING; `weights` those of tokens; `kinds` the
    probabilities of the kinds of page.
    """
    sum_tokens(page, weights, sums)
    sum_words(page.blocks, sums.blocks)
    find_cards(page, sums)
    find_alike(page, sums)
    boxes = page.boxes
    around, is_root = scratch64(REACH), scratch64(REACH)
    title = heading = int64(-1)
    for i in range(page.blocks.shape[0] - 1, -1, -1):
        if tags[boxes[page.blocks[i, BOX], TAG]] >> HEADING == 1:
            title = i  # ends at the first h1
    for i in range(page.blocks.shape[0]):
        inside, box = int64(0), page.blocks[i, BOX]
        for level in range(REACH):
            bits = tags[boxes[box, TAG]]
            inside |= bits
            around[level], is_root[level] = box, bits >> ROOT & 1
            box = max(boxes[box, OUTER], 0)
        level = tags[boxes[around[0], TAG]] >> HEADING
        if level > 0:
            heading = i
        own_features(page, i, inside, level, rows)
        name_features(i, sums, around, is_root, rows)
        place_features(i, sums.blocks, title, heading, rows)
        box_features(page, i, sums, around, rows)
        card_features(page, i, sums, around, is_root, rows)
    page_features(page, tags, kinds, sums, rows)


@kernel
def sum_kinds(
    tokens: I64Rows,
    words: I64Rows,
    others: I64,
    known: U8,
    slots: I32,
    weights: I64Rows,
    sums: I64,
    met: I64,
) -> None:
    """Add up the weights, a row a slot, of the tokens that occur, each once. `slots` has a token's
    row; it is as it was in the end. `known` has a bit for each token, 1 for those that have a row:
    it stays near the processor. `met` is room for all rows.
    """
    inner, last = tokens.shape[0], tokens.shape[0] + words.shape[0]
    count = 0
    for i in range(last + others.size):
        if i < inner:
            token = tokens[i, TOKEN]
        elif i < last:
            token = words[i - inner, TOKEN]
        else:
            token = others[i - last]
        if known[token >> 3] >> (token & 7) & 1 == 0:
            continue
        slot = int64(slots[token])
        if slot > 0:
            slots[token] = -slot  # counted already
            met[count] = token
            count += 1
            for kind in range(sums.size):
                sums[kind] += weights[slot, kind]
    for i in range(count):
        slots[met[i]] = -slots[met[i]]


@inlined
def step(node: Word, nodes: Int, column: Int) -> Word:
    """The node after one, for the column of keys at an address."""
    place = nodes + 8 * int64(node)
    word = load32(place)  # the threshold is read apart: its shift costs more than a load
    # The feature needs no shift: in place it is times 256, and its keys take 256 bytes.
    key = load32(column + int64(word & _FEATURE))
    return (word >> _NEXT_AT) + uint64(key > load32(place + THRESHOLD_AT // 8))


@kernel
def score(rows: I32, count: Int, forest: Trees, keys: I32, scores: F32) -> None:
    """The sum of a forest's trees for each of `count` columns of `rows`, which are the bits of
    floats; `keys` is room for AT_ONCE of each.

    As integers in the order of the floats they are held at once against what a node's one word
    says; those of AT_ONCE columns stay near the processor for all trees. Four trees are walked at
    once over two columns, without a branch: a processor guesses wrong at every second one, and
    waits less for eight loads than for each in turn.
    """
    roots, depths, nodes, value = forest
    start = int64(nodes.ctypes.data)
    scores[:] = 0
    for first in range(0, count, AT_ONCE):
        here = min(AT_ONCE, count - first)
        for feature in range(rows.size // count):
            for i in range(here):
                bits = rows[feature * count + first + i]
                # As integers in the order of floats: negative ones with all bits flipped, others
                # with the sign flipped.
                keys[feature * AT_ONCE + i] = bits ^ ((bits >> 31) | MINUS)
        for tree in range(0, roots.size, TREES_AT_ONCE):
            depth = max(depths[tree], depths[tree + 1], depths[tree + 2], depths[tree + 3])
            for i in range(0, here, 2):
                one = int64(keys.ctypes.data) + 4 * i
                # The last of an odd number is its own other one.
                other = one + 4 * min(1, here - 1 - i)
                a = e = uint64(roots[tree])
                b = f = uint64(roots[tree + 1])
                c = g = uint64(roots[tree + 2])
                d = h = uint64(roots[tree + 3])
                for _ in range(depth):
                    a, e = step(a, start, one), step(e, start, other)
                    b, f = step(b, start, one), step(f, start, other)
                    c, g = step(c, start, one), step(g, start, other)
                    d, h = step(d, start, one), step(h, start, other)
                scores[first + i] += value[a] + value[b] + value[c] + value[d]
                if other > one:
                    scores[first + i + 1] += value[e] + value[f] + value[g] + value[h]
