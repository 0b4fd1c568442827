"""All compiled code, and nothing else: kernels walk bytes and columns without Python's lock and
hold no policy.
"""
