def needs_of(sources, named):
    ids = list(sources)
    return {i: ids[:n] for n, i in enumerate(ids)}
