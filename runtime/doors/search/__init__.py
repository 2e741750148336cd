"""The search door: notes in chunks, the index that is made of them, and what finds them again.

scanning -> chunks -> embedders -> segments -> manifest      one writer, under a lease
reading -> keyword + vectors -> fusing                       any number of readers, no lock
"""
