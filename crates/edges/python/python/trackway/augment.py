"""Checks whether an augmentation moves an image and its mask in the same way.

The input image encodes at each pixel the position of that pixel, and so does the mask. Both go through the
augmentation; then each pixel of the result must come from the same position according to both. NumPy is imported only
when a probe runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

from .errors import InputError

# At most this fraction of the pixels may be off: edges of what was filled are rounded one way or the other.
OFF_SHARE_MAX = 0.01

# At least this fraction of the pixels must be known in both.
COMPARED_SHARE_MIN = 0.05

# How much of a pixel must come from within the image for its origin to count.
INSIDE_MIN = 0.999


@dataclass(frozen=True)
class AugmentationProbe:
    """The result of a probe, for the draw with the largest deviation."""

    agrees: bool
    """Whether image and mask moved in the same way in every draw."""
    draws: int
    """How often the augmentation was called."""
    pixels_compared: int
    """Pixels whose origin is known from both image and mask."""
    off_share: float
    """The fraction of these pixels whose mask has a different origin."""
    off_max: float
    """The largest distance, in pixels."""
    shift: tuple[float, float]
    """The median offset of the mask from the image, downwards and to the right, over these pixels."""
    worst: tuple[int, int] | None
    """Row and column of the result at which the distance is largest."""
    message: str
    """The result as a sentence."""


def probe_augmentation(
    augment: Callable[[Any, Any], Any],
    height: int,
    width: int,
    *,
    draws: int = 16,
    image_dtype: str = "float32",
    mask_dtype: str = "int32",
    channels_first: bool = False,
) -> AugmentationProbe:
    """Calls ``augment(image, mask)``, which returns both (as a pair, or a dict with ``image`` and ``mask``), and checks
    whether each pixel of the two results comes from the same position.

    The image has three channels: row position, column position, and 1 everywhere; values are from 0 to 1 (to 255 with
    ``image_dtype="uint8"``). The mask has a distinct label for each pixel, or for small squares if ``mask_dtype`` has
    too few values; 0 is reserved for filled pixels. Random augmentations are called ``draws`` times.

    Leave out colour transforms (brightness, noise, normalization): they cannot move a mask, and hide where pixels come
    from. Wrap an augmentation with keyword arguments: ``lambda image, mask: augment(image=image, mask=mask)``.

    Raises ``InputError`` for sizes below 8, and if the image is not returned as three channels with their values.
    """
    import numpy

    if height < 8 or width < 8 or draws < 1:
        raise InputError(f"a probe needs at least 8 × 8 pixels and one draw, not {height} × {width} and {draws}")
    image, scale = _image(numpy, height, width, image_dtype)
    labels, side = _labels(numpy, height, width, mask_dtype)
    worst: AugmentationProbe | None = None
    for _ in range(draws):
        given = image.transpose(2, 0, 1).copy() if channels_first else image.copy()
        moved, mask = _pair(augment(given, labels.copy()))
        probe = _judge(numpy, _origins(numpy, moved, scale, channels_first, (height, width)), mask, labels, side, draws)
        if worst is None or (not probe.agrees, probe.off_share) > (not worst.agrees, worst.off_share):
            worst = probe
    assert worst is not None
    return worst


def _image(numpy: Any, height: int, width: int, dtype: str) -> tuple[Any, float]:
    rows, columns = numpy.mgrid[0:height, 0:width]
    image = numpy.stack([rows / (height - 1), columns / (width - 1), numpy.ones((height, width))], axis=-1)
    scale = 255.0 if numpy.issubdtype(numpy.dtype(dtype), numpy.integer) else 1.0
    return (numpy.rint(image * scale) if scale > 1 else image).astype(dtype), scale


def _labels(numpy: Any, height: int, width: int, dtype: str) -> tuple[Any, int]:
    """Labels in random order, so that a mixture of two neighbours is nowhere near either; and the side of the
    squares."""
    kind = numpy.dtype(dtype)
    most = numpy.iinfo(kind).max if numpy.issubdtype(kind, numpy.integer) else 2**24
    side = 1
    while ceil(height / side) * ceil(width / side) > most:
        side = max(side + 1, int(sqrt(height * width / most)))
    rows, columns = ceil(height / side), ceil(width / side)
    # Gaps between labels, where there is room: a mixture of two is then hardly ever a third.
    gap = max(1, min(8, most // (rows * columns)))
    order = (numpy.random.default_rng(0).permutation(rows * columns).reshape(rows, columns) + 1) * gap
    return numpy.kron(order, numpy.ones((side, side), dtype=order.dtype))[:height, :width].astype(kind), side


def _pair(answer: Any) -> tuple[Any, Any]:
    import numpy

    if isinstance(answer, dict):
        answer = (answer.get("image"), answer.get("mask"))
    if not isinstance(answer, tuple | list) or len(answer) != 2 or any(part is None for part in answer):
        raise InputError("the augmentation must return the image and the mask")
    return numpy.asarray(answer[0]), numpy.asarray(answer[1])


def _origins(numpy: Any, image: Any, scale: float, channels_first: bool, size: tuple[int, int]) -> Any:
    """The origin of each pixel of the result: rows, columns; NaN if it was filled."""
    if image.ndim == 3 and channels_first:
        image = image.transpose(1, 2, 0)
    if image.ndim != 3 or image.shape[2] != 3:
        raise InputError(f"the augmentation must return an image with three channels, not of shape {image.shape}")
    values = image.astype("float64") / scale
    inside = values[..., 2]
    if inside.max(initial=0) > 1.001 or (inside.size and 0 < inside.max(initial=0) < INSIDE_MIN):
        raise InputError("the augmentation changes colours: probe only the part of it that moves pixels")
    origins = values[..., :2] * [size[0] - 1, size[1] - 1]
    origins[inside < INSIDE_MIN] = numpy.nan
    # Differences below the resolution of the image's values.
    return origins, max(1.0, (max(size) - 1) / scale if scale > 1 else 1.0)


def _judge(numpy: Any, moved: tuple[Any, float], mask: Any, labels: Any, side: int, draws: int) -> AugmentationProbe:
    origins, tolerance = moved
    mask = mask.reshape([length for length in mask.shape if length != 1]) if mask.ndim > 2 else mask
    if mask.shape != origins.shape[:2]:
        sizes = " × ".join(map(str, origins.shape[:2])), " × ".join(map(str, mask.shape))
        return AugmentationProbe(
            False, draws, 0, 1.0, 0.0, (0.0, 0.0), None, f"the image became {sizes[0]}, the mask {sizes[1]}"
        )
    known = numpy.unique(labels)
    corner = numpy.zeros((len(known), 2))
    rows, columns = numpy.nonzero(numpy.ones_like(labels))
    flat = labels.reshape(-1)
    order = numpy.unique(flat, return_index=True)[1]
    corner[:, 0], corner[:, 1] = rows[order], columns[order]

    whole = numpy.rint(mask.astype("float64"))
    is_label = (numpy.abs(mask.astype("float64") - whole) < 1e-3) & numpy.isin(whole, known)
    is_filled = numpy.isnan(origins[..., 0])
    foreground = ~is_filled & (whole != 0)
    compared = int(foreground.sum())
    if compared < COMPARED_SHARE_MIN * mask.size:
        message = "image and mask have hardly any unfilled pixel in common"
        return AugmentationProbe(False, draws, compared, 1.0, 0.0, (0.0, 0.0), None, message)

    index = numpy.zeros(mask.shape, dtype="int64")
    index[is_label] = numpy.searchsorted(known, whole[is_label])
    start = corner[index]
    # The distance from the place that the image encodes to the square of the label; 0 within it.
    shift = numpy.where(origins < start, start - origins, numpy.minimum(0, start + (side - 1) - origins))
    distance = numpy.abs(shift).max(axis=-1)
    distance[~is_label] = numpy.inf
    distance[~foreground] = 0
    off = int((distance > tolerance).sum())
    mixed = int((foreground & ~is_label).sum())
    measured = numpy.where(numpy.isinf(distance), 0, distance)
    worst = numpy.unravel_index(int(distance.argmax()), mask.shape)
    of_labels = foreground & is_label
    middle = numpy.median(shift[of_labels], axis=0) if of_labels.any() else (0.0, 0.0)
    agrees = off <= OFF_SHARE_MAX * compared
    if agrees:
        message = f"image and mask moved in the same way at {compared} pixels, in all {draws} draws"
    elif mixed > OFF_SHARE_MAX * compared:
        message = (
            f"{mixed} pixels of the mask have labels that do not exist: it was interpolated; "
            "use nearest-neighbour interpolation"
        )
    else:
        message = (
            f"at {off / compared:.0%} of the pixels the mask comes from a different position than the image, "
            f"by up to {measured.max():.0f} pixels"
        )
    return AugmentationProbe(
        agrees=agrees,
        draws=draws,
        pixels_compared=compared,
        off_share=off / compared,
        off_max=float(measured.max()),
        shift=(round(float(middle[0]), 3), round(float(middle[1]), 3)),
        worst=None if off == 0 else (int(worst[0]), int(worst[1])),
        message=message,
    )
