"""The walk of `condshap.trees.cuda` as a Triton kernel: `sum_trees`, None where Triton is absent."""

# mypy: ignore-errors

try:
    import triton
    import triton.language as tl
except ImportError:
    sum_trees = None
else:

    @triton.jit
    def sum_trees(
        X, words, thresholds, values, firsts, depths, ranges, sums, n, n_features, n_outputs,
        WIDTH: tl.constexpr, WIDE: tl.constexpr, SHIFT: tl.constexpr, FEATURES: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        """Write sums (n, n_outputs) of the trees for one block of rows X (n, n_features) and one output.

        Pointers are to contiguous arrays as described in `DeviceTrees`; WIDTH is V. With WIDE rows and thresholds are
        float64, otherwise the threshold is the lower half of the word.
        """
        output = tl.program_id(1)
        rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = rows < n
        own = X + tl.where(inside, rows, 0) * n_features
        if WIDTH > 1:
            values += output
        total = tl.zeros([BLOCK], dtype=tl.float64)
        for tree in range(tl.load(ranges + 2 * output), tl.load(ranges + 2 * output + 1)):
            first = tl.load(firsts + tree)
            at = tl.zeros([BLOCK], dtype=tl.int32)
            for _step in range(tl.load(depths + tree)):
                word = tl.load(words + first + at)
                upper = (word >> 32).to(tl.int32)
                x = tl.load(own + ((upper >> SHIFT) & FEATURES))
                if WIDE:  # noqa: SIM108
                    threshold = tl.load(thresholds + first + at)
                else:
                    threshold = word.to(tl.int32).to(tl.float32, bitcast=True)
                right = (x > threshold) | ((x != x) & (upper >= 0))
                at = (upper & ((1 << SHIFT) - 1)) + right.to(tl.int32)
            total += tl.load(values + (first + at) * WIDTH)
        tl.store(sums + rows * n_outputs + output, total, mask=inside)
