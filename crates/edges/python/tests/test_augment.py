"""The coordinate-grid probe, on augmentations that are right and on some that are wrong."""

import numpy
import pytest

from trackway import InputError, probe_augmentation

SIZE = (48, 64)


def flip_both(rng):
    """Flips and turns both alike."""

    def augment(image, mask):
        if rng.random() < 0.5:
            image, mask = image[:, ::-1], mask[:, ::-1]
        turns = rng.integers(4)
        return numpy.rot90(image, turns).copy(), numpy.rot90(mask, turns).copy()

    return augment


def crop(array, top, left):
    return array[top : top + 32, left : left + 40]


def crop_both(rng):
    """One place for both, and fills what is outside."""

    def augment(image, mask):
        top, left = rng.integers(0, 17), rng.integers(0, 25)
        image, mask = crop(image, top, left), crop(mask, top, left)
        return numpy.pad(image, ((4, 4), (4, 4), (0, 0))), numpy.pad(mask, 4)

    return augment


def sample(array, rows, columns, nearest):
    """Values at fractions of pixels; 0 outside."""
    height, width = array.shape[:2]
    channels = array.reshape(height, width, -1).astype("float64")
    inside = (rows >= 0) & (rows <= height - 1) & (columns >= 0) & (columns <= width - 1)
    if nearest:
        rows, columns = numpy.rint(rows), numpy.rint(columns)
    top, left = numpy.floor(rows).astype(int), numpy.floor(columns).astype(int)
    down, right = (rows - top)[..., None], (columns - left)[..., None]
    at = lambda row, column: channels[row.clip(0, height - 1), column.clip(0, width - 1)]  # noqa: E731
    value = (
        at(top, left) * (1 - down) * (1 - right)
        + at(top + 1, left) * down * (1 - right)
        + at(top, left + 1) * (1 - down) * right
        + at(top + 1, left + 1) * down * right
    )
    value[~inside] = 0
    return value.reshape(array.shape).astype(array.dtype)


def turn(rng, mask_nearest=True):
    """Rotates and scales both by the same angle; the image is interpolated, the mask takes the nearest pixel."""

    def augment(image, mask):
        angle, scale = rng.uniform(-0.5, 0.5), rng.uniform(0.8, 1.2)
        rows, columns = numpy.mgrid[0 : SIZE[0], 0 : SIZE[1]].astype("float64")
        rows, columns = (rows - 24) * scale, (columns - 32) * scale
        rows, columns = (
            rows * numpy.cos(angle) - columns * numpy.sin(angle) + 24,
            rows * numpy.sin(angle) + columns * numpy.cos(angle) + 32,
        )
        return sample(image, rows, columns, False), sample(mask, rows, columns, mask_nearest)

    return augment


@pytest.mark.parametrize("make", [flip_both, crop_both, turn, lambda rng: lambda image, mask: (image, mask)])
@pytest.mark.parametrize("mask_dtype", ["int32", "uint8", "float32"])
@pytest.mark.parametrize("image_dtype", ["float32", "uint8"])
def test_right_augmentations_agree(make, mask_dtype, image_dtype):
    """Whatever moves both alike agrees, whatever the types."""
    augment = make(numpy.random.default_rng(1))
    probe = probe_augmentation(augment, *SIZE, mask_dtype=mask_dtype, image_dtype=image_dtype)
    assert probe.agrees and probe.off_share <= 0.01, probe


def mask_not_flipped(rng):
    return lambda image, mask: (image[:, ::-1].copy(), mask) if rng.random() < 0.5 else (image, mask)


def mask_interpolated(rng):
    return turn(rng, mask_nearest=False)


def crop_drawn_twice(rng):
    def augment(image, mask):
        draw = lambda array: crop(array, rng.integers(0, 17), rng.integers(0, 25))  # noqa: E731
        return draw(image), draw(mask)

    return augment


def angle_drawn_twice(rng):
    return lambda image, mask: (turn(rng)(image, mask)[0], turn(rng)(image, mask)[1])


def mask_transposed(rng):
    return lambda image, mask: (numpy.rot90(image).copy(), mask.T.copy())


def mask_not_resized(rng):
    return lambda image, mask: (image[::2, ::2], mask)


def off_by_three(rng):
    return lambda image, mask: (image, numpy.roll(mask, 3, axis=1))


@pytest.mark.parametrize(
    "make, said",
    [
        (mask_not_flipped, "different position than the image, by up to 63 pixels"),
        (mask_interpolated, "it was interpolated"),
        (crop_drawn_twice, "different position than the image"),
        (angle_drawn_twice, "different position than the image"),
        (mask_transposed, "different position than the image"),
        (mask_not_resized, "the image became 24 × 32, the mask 48 × 64"),
        (off_by_three, "different position than the image"),
    ],
)
def test_wrong_augmentations_do_not_agree(make, said):
    """What moves one alone, both differently, or mixes labels is found, and reported."""
    probe = probe_augmentation(make(numpy.random.default_rng(2)), *SIZE)
    assert not probe.agrees and said in probe.message, probe


def test_how_far_and_where():
    """A mask that is three pixels to the right of its image is reported as such."""
    probe = probe_augmentation(lambda image, mask: (image[:, 3:], mask[:, :-3]), *SIZE)
    assert probe.shift == (0.0, -3.0) and probe.off_share == 1.0 and round(probe.off_max, 3) == 3.0, probe


def test_small_types_and_channels_first():
    """Masks of 255 labels distinguish squares, channels may come first, and results may be dicts."""
    wrong = probe_augmentation(mask_not_flipped(numpy.random.default_rng(3)), *SIZE, mask_dtype="uint8")
    assert not wrong.agrees
    both = lambda image, mask: {"image": image[:, :, ::-1].copy(), "mask": mask[:, ::-1].copy()}  # noqa: E731
    assert probe_augmentation(both, *SIZE, channels_first=True).agrees


def test_what_cannot_be_probed():
    """Colours that change, an image that is gone and sizes that are too small are errors, not verdicts."""
    for augment in [lambda image, mask: (image * 0.5, mask), lambda image, mask: image]:
        with pytest.raises(InputError):
            probe_augmentation(augment, *SIZE)
    with pytest.raises(InputError):
        probe_augmentation(lambda image, mask: (image, mask), 4, 4)
