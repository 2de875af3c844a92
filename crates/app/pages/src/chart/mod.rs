//! The chart writer: one small model of axes and marks, drawn as SVG without scripts.
//!
//! Colours and line styles are classes of the style sheet, so that dark mode and print need no second drawing. Every chart has a
//! title and a description for screen readers. Texts are nodes, never attributes: see [`crate::Page`].

mod axis;

use maud::{Markup, Render, html};

pub use axis::{Axis, Unit, range};

/// Colours of series; further series repeat them with another dash.
const COLOURS: usize = 4;
/// Dashes of lines.
const DASHES: usize = 4;
/// How far a slanted letter reaches sideways and down, of its width: at 45°.
const SLANT: f64 = 0.72;
/// About the width of a letter at a tick.
const LETTER: f64 = 5.4;
/// Room above the field and right of it.
const MARGIN: f64 = 8.0;
/// Room right of the field for the percentages of bars.
const PERCENTAGE: f64 = 46.0;

/// Width and height of the whole drawing, in its own units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size(pub f64, pub f64);

impl Size {
    /// For a card of a grid.
    pub const CARD: Self = Self(300.0, 190.0);
    /// As wide as high, for axes that are alike.
    pub const SQUARE: Self = Self(300.0, 280.0);
    /// For curves with many points.
    pub const WIDE: Self = Self(400.0, 200.0);

    /// Bands below each other, so many.
    pub fn rows(count: usize) -> Self {
        Self(300.0, 30.0 + 18.0 * count.max(1) as f64)
    }
}

/// How a series looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The colour of a series, and its dash where colours repeat.
    Series(usize),
    /// The same series in its colour, drawn lightly: single rows behind their mean.
    Light(usize),
    /// Something to compare with: a diagonal, the value 0.
    Reference,
    /// A limit that should not be reached.
    Limit,
}

impl Tone {
    fn class(self) -> String {
        match self {
            Self::Series(index) => format!("s{} d{}", index % COLOURS, index / COLOURS % DASHES),
            Self::Light(index) => format!("s{} light", index % COLOURS),
            Self::Reference => "reference".to_owned(),
            Self::Limit => "limit".to_owned(),
        }
    }
}

/// A point, and what is shown when it is pointed at.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// In the units of the drawing.
    pub radius: f64,
    /// Empty: nothing.
    pub note: String,
}

/// What is drawn of a series, in values of both axes.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A line through points, with a gap where there is no value.
    Line(Vec<(f64, Option<f64>)>),
    /// The area between two values for each x.
    Area(Vec<(f64, f64, f64)>),
    /// A step curve over bins of equal width from end to end of the x axis.
    Steps(Vec<f64>),
    /// The same, filled: a histogram.
    Histogram(Vec<f64>),
    Points(Vec<Dot>),
    /// A bar to the right for each band of the y axis: this series' values, its place in the band and the number of places. The
    /// percentages of the first series are written at the right.
    Bars(Vec<f64>, (usize, usize)),
    /// An interval with its ends: upright at x, or along the x axis where the y axis has bands.
    Intervals(Vec<(f64, f64, f64)>),
    /// The same as a broad bar.
    Ranges(Vec<(f64, f64, f64)>),
    /// A line from left to right.
    Level(f64),
    /// A line from top to bottom.
    Upright(f64),
}

/// A named series.
#[derive(Debug, Clone, PartialEq)]
struct Series {
    name: String,
    tone: Tone,
    mark: Mark,
}

/// A chart. `html! { (chart) }` draws it.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    title: String,
    size: Size,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
}

impl Chart {
    /// Without any series yet.
    pub fn new(title: &str, size: Size, x: Axis, y: Axis) -> Self {
        Self { title: title.to_owned(), size, x, y, series: Vec::new() }
    }

    /// Draws a series above those before. An empty name is in no description.
    #[must_use]
    pub fn with(mut self, name: &str, tone: Tone, mark: Mark) -> Self {
        self.series.push(Series { name: name.to_owned(), tone, mark });
        self
    }

    fn description(&self) -> String {
        let names: Vec<&str> =
            self.series.iter().map(|series| series.name.as_str()).filter(|name| !name.is_empty()).collect();
        let shown = if names.is_empty() { String::new() } else { format!("; series: {}", names.join(", ")) };
        format!("x axis, {}; y axis, {}{shown}", self.x.words(), self.y.words())
    }
}

impl Render for Chart {
    fn render(&self) -> Markup {
        let field = Field::of(self);
        let Size(width, height) = self.size;
        html! {
            svg viewBox=(format!("0 0 {width:.0} {height:.0}")) role="img" {
                title { (self.title) }
                desc { (self.description()) }
                rect.field x=(px(field.left)) y=(px(field.top)) width=(px(field.width)) height=(px(field.height)) {}
                (field.ticks_below())
                (field.ticks_left())
                @for series in &self.series {
                    g class=(series.tone.class()) {
                        @if !series.name.is_empty() { title { (series.name) } }
                        (field.mark(&series.mark))
                    }
                }
            }
        }
    }
}

/// The names of series beside their colours.
pub fn legend<'n>(names: impl IntoIterator<Item = (Tone, &'n str)>) -> Markup {
    html! {
        p.legend {
            @for (tone, name) in names {
                span {
                    svg.key viewBox="0 0 24 10" { g class=(tone.class()) { path.line d="M0 5H24" {} } }
                    (name)
                }
            }
        }
    }
}

/// An interval in a cell of a table: a value, its ends, and a mark to compare it with, between both ends of a scale.
pub fn interval_bar(value: f64, interval: Option<(f64, f64)>, scale: &Axis, mark: Option<f64>) -> Markup {
    let at = |value: f64| 160.0 * scale.place(value);
    html! {
        svg.bar viewBox="0 0 160 14" aria-hidden="true" {
            path.field d="M0 7H160" {}
            g.s0 {
                @if let Some((low, high)) = interval {
                    rect.range x=(px(at(low))) y="3" width=(px((at(high) - at(low)).max(1.0))) height="8" {}
                }
                @if value.is_finite() { path.line d=(format!("M{} 1V13", px(at(value)))) {} }
            }
            @if let Some(mark) = mark { g.reference { path.line d=(format!("M{} 0V14", px(at(mark)))) {} } }
        }
    }
}

/// A place in the drawing, with one decimal.
fn px(place: f64) -> String {
    format!("{place:.1}")
}

/// Where the marks of a chart go.
struct Field<'c> {
    chart: &'c Chart,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// Names below the field overlap unless they are slanted.
    is_slanted: bool,
}

/// How far from the left the field must begin, so that no slanted name leaves the drawing there: a name ends below the middle of its band.
fn room_for_slanted(chart: &Chart, end: f64) -> f64 {
    let bands = chart.x.band_count() as f64;
    let names = chart.x.ticks().into_iter().enumerate();
    let needed = names.map(|(band, (_, name))| {
        let reach = name.chars().count() as f64 * LETTER * SLANT - 3.0;
        let part = (band as f64 + 0.5) / bands;
        (reach - end * part) / (1.0 - part)
    });
    needed.fold(0.0, f64::max).min(end / 2.0)
}

impl<'c> Field<'c> {
    fn of(chart: &'c Chart) -> Self {
        let Size(width, height) = chart.size;
        let longest = |axis: &Axis| {
            let letters = axis.ticks().into_iter().map(|(_, text)| text.chars().count());
            letters.max().unwrap_or(0) as f64 * LETTER
        };
        let room = |axis: &Axis| if axis.label.is_empty() { 0.0 } else { 14.0 };
        let beside = longest(&chart.y) + 8.0 + room(&chart.y);
        let has_bars = chart.series.iter().any(|series| matches!(series.mark, Mark::Bars(..)));
        let right = if has_bars && chart.x.unit == Unit::Percent { PERCENTAGE } else { MARGIN };
        let names = longest(&chart.x);
        let bands = chart.x.band_count();
        let is_slanted = bands > 0 && names + 4.0 > (width - beside - right).max(1.0) / bands as f64;
        let left = if is_slanted { beside.max(room_for_slanted(chart, width - right)) } else { beside };
        let field_width = (width - left - right).max(1.0);
        let below = if is_slanted { 10.0 + names * SLANT } else { 16.0 };
        let top = MARGIN;
        let field_height = (height - top - below - room(&chart.x)).max(1.0);
        Self { chart, left, top, width: field_width, height: field_height, is_slanted }
    }

    fn x(&self, value: f64) -> f64 {
        self.left + self.width * self.chart.x.place(value)
    }

    /// Numbers grow upwards, bands follow each other downwards.
    fn y(&self, value: f64) -> f64 {
        let place = self.chart.y.place(value);
        self.top + self.height * if self.chart.y.band_count() > 0 { place } else { 1.0 - place }
    }

    fn ticks_below(&self) -> Markup {
        let bottom = self.top + self.height;
        let is_numbers = self.chart.x.band_count() == 0;
        html! {
            @for (value, text) in self.chart.x.ticks() {
                @let x = self.x(value);
                @if is_numbers { path.field d=(format!("M{} {}v3", px(x), px(bottom))) {} }
                @if self.is_slanted {
                    @let (x, y) = (px(x + 3.0), px(bottom + 10.0));
                    text.end x=(x) y=(y) transform=(format!("rotate(-45 {x} {y})")) { (text) }
                } @else {
                    // At the right end a centred text would leave the drawing.
                    @let place = if x > self.left + self.width - 8.0 && is_numbers { "end" } else { "middle" };
                    text class=(place) x=(px(x)) y=(px(bottom + 13.0)) { (text) }
                }
            }
            @if !self.chart.x.label.is_empty() {
                text.middle x=(px(self.left + self.width / 2.0)) y=(px(self.chart.size.1 - 3.0)) { (self.chart.x.label) }
            }
        }
    }

    fn ticks_left(&self) -> Markup {
        let is_numbers = self.chart.y.band_count() == 0;
        let (x, y) = (px(10.0), px(self.top + self.height / 2.0));
        html! {
            @for (value, text) in self.chart.y.ticks() {
                @let y = self.y(value);
                @if is_numbers { path.guide d=(format!("M{} {}h{}", px(self.left), px(y), px(self.width))) {} }
                text.end x=(px(self.left - 4.0)) y=(px(y + 3.5)) { (text) }
            }
            @if !self.chart.y.label.is_empty() {
                text.middle x=(x) y=(y) transform=(format!("rotate(-90 {x} {y})")) { (self.chart.y.label) }
            }
        }
    }

    fn mark(&self, mark: &Mark) -> Markup {
        match mark {
            Mark::Line(points) => self.line(points),
            Mark::Area(points) => self.area(points),
            Mark::Steps(values) => html! { path.line d=(self.steps(values)) {} },
            Mark::Histogram(values) => html! { path.filled.line d=(self.steps(values)) {} },
            Mark::Points(dots) => html! {
                @for dot in dots {
                    circle.dot cx=(px(self.x(dot.x))) cy=(px(self.y(dot.y))) r=(px(dot.radius)) {
                        @if !dot.note.is_empty() { title { (dot.note) } }
                    }
                }
            },
            Mark::Bars(values, place) => self.bars(values, *place),
            Mark::Intervals(intervals) => html! {
                @for interval in intervals { path.line d=(self.interval(*interval)) {} }
            },
            Mark::Ranges(ranges) => self.ranges(ranges),
            Mark::Level(value) => {
                html! { path.line d=(format!("M{} {}h{}", px(self.left), px(self.y(*value)), px(self.width))) {} }
            }
            Mark::Upright(value) => {
                html! { path.line d=(format!("M{} {}v{}", px(self.x(*value)), px(self.top), px(self.height))) {} }
            }
        }
    }

    /// Each piece without a gap is a line; a piece of one point is a dot.
    fn line(&self, points: &[(f64, Option<f64>)]) -> Markup {
        let known = |(x, y): &(f64, Option<f64>)| Some((*x, y.filter(|y| y.is_finite())?));
        let pieces = points.split(|point| known(point).is_none()).filter(|piece| !piece.is_empty());
        html! {
            @for piece in pieces {
                @let places = piece.iter().filter_map(known).map(|(x, y)| (px(self.x(x)), px(self.y(y))));
                @let places: Vec<(String, String)> = places.collect();
                @if let [(x, y)] = places.as_slice() {
                    circle.dot cx=(x) cy=(y) r="2" {}
                } @else {
                    @let places: Vec<String> = places.into_iter().map(|(x, y)| format!("{x},{y}")).collect();
                    polyline.line points=(places.join(" ")) {}
                }
            }
        }
    }

    fn area(&self, points: &[(f64, f64, f64)]) -> Markup {
        let lower = points.iter().map(|(x, low, _)| (*x, *low));
        let upper = points.iter().rev().map(|(x, _, high)| (*x, *high));
        let corners = lower.chain(upper).map(|(x, y)| format!("{},{}", px(self.x(x)), px(self.y(y))));
        html! { polygon.area points=(corners.collect::<Vec<String>>().join(" ")) {} }
    }

    fn steps(&self, values: &[f64]) -> String {
        let bin = self.width / values.len().max(1) as f64;
        let steps = values.iter().enumerate().map(|(index, value)| {
            format!("V{}H{}", px(self.y(*value)), px(self.left + bin * (index + 1) as f64))
        });
        let (left, bottom) = (px(self.left), px(self.top + self.height));
        format!("M{left} {bottom}{}V{bottom}", steps.collect::<String>())
    }

    /// The height of a band.
    fn band(&self) -> f64 {
        self.height / self.chart.y.band_count().max(1) as f64
    }

    fn bars(&self, values: &[f64], (place, places): (usize, usize)) -> Markup {
        let height = (self.band() - 4.0).max(1.0) / places.max(1) as f64;
        html! {
            @for (band, value) in values.iter().enumerate() {
                @let top = self.top + self.band() * band as f64 + 2.0 + height * place as f64;
                @let width = (self.x(*value) - self.left).max(0.0);
                rect.bar x=(px(self.left)) y=(px(top)) width=(px(width)) height=(px(height)) {}
                @if place == 0 && self.chart.x.unit == Unit::Percent {
                    @let (x, y) = (px(self.chart.size.0 - 2.0), px(self.y(band as f64) + 3.5));
                    text.end x=(x) y=(y) { (format!("{:.1} %", value * 100.0)) }
                }
            }
        }
    }

    fn interval(&self, (at, low, high): (f64, f64, f64)) -> String {
        if self.chart.y.band_count() > 0 {
            let (y, left, right) = (self.y(at), self.x(low), self.x(high));
            return format!("M{l} {0}v8m0 -4H{r}m0 -4v8", px(y - 4.0), l = px(left), r = px(right));
        }
        let (x, bottom, top) = (self.x(at), self.y(low), self.y(high));
        format!("M{0} {b}h4m-2 0V{t}m-2 0h4", px(x - 2.0), b = px(bottom), t = px(top))
    }

    fn ranges(&self, ranges: &[(f64, f64, f64)]) -> Markup {
        let width = 0.7 * self.width / self.chart.x.band_count().max(1) as f64;
        html! {
            @for (x, low, high) in ranges {
                @let (top, bottom) = (self.y(*high), self.y(*low));
                rect.range x=(px(self.x(*x) - width / 2.0)) y=(px(top)) width=(px(width)) height=(px((bottom - top).max(1.0))) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that slanted names below the field begin within the drawing, the first one too, and that the field stays
    /// as it is without them.
    #[test]
    fn slanted_names_stay_within() {
        let chart = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let y = Axis::linear("", (0.0, 1.0), Unit::Number);
            Chart::new("c", Size::CARD, Axis::bands("", names), y)
        };
        let long = ["[0.0417, 0.0878)"; 10];
        let slanted = chart(&long);
        let field = Field::of(&slanted);
        assert!(field.is_slanted);
        for (band, (_, name)) in slanted.x.ticks().into_iter().enumerate() {
            let begins = field.x(band as f64) + 3.0 - name.chars().count() as f64 * LETTER * SLANT;
            assert!(begins >= -0.01, "{name} begins at {begins}");
        }
        let short = chart(&["a"; 10]);
        assert!(!Field::of(&short).is_slanted && Field::of(&short).left < field.left);
    }
}
