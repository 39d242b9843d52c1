"""Best fit decreasing, one item after the other."""

from __future__ import annotations


def best_fit(lengths: list[int], capacity: int) -> list[list[int]]:
    """Pack the longest item first, each into the fullest bin with room for it, of equal ones the last to become so."""
    bins: list[list[int]] = []
    rooms: list[tuple[int, int, int]] = []  # room, negative time of its last change, bin
    for time, index in enumerate(sorted(range(len(lengths)), key=lambda index: -lengths[index])):
        fitting = [entry for entry in rooms if entry[0] >= lengths[index]]
        if fitting:
            chosen = min(fitting)
            rooms.remove(chosen)
            room, _, number = chosen
        else:
            room, number = capacity, len(bins)
            bins.append([])
        bins[number].append(index)
        rooms.append((room - lengths[index], -time, number))
    return bins
