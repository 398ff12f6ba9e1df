//! Line charts as SVG, over an even or a logarithmic axis. They need nothing from outside.
//!
//! [`Chart::render`] makes an element of a page, whose style has the classes `c0` to `c5`, `dash1` to
//! `dash5`, `line`, `key`, `entry`, `grid`, `tick`, `mark` and `checkpoint`. [`Chart::render_file`] makes a
//! file of its own, with the style that it is given.

use crate::number::{number, tick_step};
use std::fmt::Write as _;

/// The size of a chart in its own units; the page scales it.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;
/// How many colours there are.
pub const COLOURS: usize = 6;
/// How many kinds of dashes there are, the solid line among them.
const DASHES: usize = 6;
/// The most points that are drawn of a line: more than there are dots on a screen say nothing.
const POINTS_MAX: usize = 1500;
/// About how many parts the ticks divide an axis into.
const TICKS: f64 = 5.0;
/// A tick so near to the right end stands left of it, so that its number is not cut off.
const EDGE: f64 = 30.0;
/// The room of a name in the legend of a file.
const LEGEND_WIDTH: f64 = 96.0;

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// How it looks.
    pub look: Look,
    /// Its points, by their x.
    pub points: Vec<(f64, f64)>,
}

impl Line {
    /// A line in the colour of its place.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { name: name.into(), look: Look::OfPlace, points }
    }

    fn class_at(&self, place: usize) -> String {
        let (colour, dashes) = match self.look {
            Look::Class(class) => return class.to_owned(),
            Look::OfPlace => (place % COLOURS, place / COLOURS),
            Look::Stroke { colour, dashes } => (colour % COLOURS, dashes),
        };
        match dashes % DASHES {
            0 => format!("line c{colour}"),
            dashes => format!("line c{colour} dash{dashes}"),
        }
    }
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The colour of its place among the lines; those beyond the last colour are dashed.
    OfPlace,
    /// A class of the style that the chart is drawn with.
    Class(&'static str),
    /// A colour and a kind of dashes by their numbers. Numbers beyond the last begin anew.
    Stroke {
        /// Which colour.
        colour: usize,
        /// Which dashes; 0 is solid.
        dashes: usize,
    },
}

/// The scale of the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Even.
    Linear,
    /// In powers of ten, from the smallest x above 0.
    Logarithmic,
}

/// The kind of event that a mark shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// Seconds in which far less was done: the whole height.
    Dip,
    /// A checkpoint of the server: a bar along the axis.
    Checkpoint,
}

/// The height of a bar along the axis.
const BAR_HEIGHT: f64 = 7.0;

/// A span that is marked.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Of what.
    pub kind: MarkKind,
    /// From this x.
    pub from: f64,
    /// To this one.
    pub to: f64,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The description for readers who cannot see it.
    pub title: String,
    /// The name of the horizontal axis.
    pub x_name: &'static str,
    /// Its scale.
    pub x_axis: Axis,
    /// The lines.
    pub lines: Vec<Line>,
    /// The marks.
    pub marks: Vec<Mark>,
    /// A value that the vertical axis reaches at least, so that several charts share a scale; 0 for its own.
    pub y_least: f64,
}

impl Chart {
    /// As an element of the page, with its legend; empty if there is no point to draw.
    pub fn render(&self) -> String {
        let Some(frame) = self.frame() else { return String::new() };
        let mut svg = format!(
            "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape(&self.title)
        );
        for mark in &self.marks {
            let (from, to) = (frame.x(mark.from), frame.x(mark.to));
            let (class, top, least) = match mark.kind {
                MarkKind::Dip => ("mark", TOP, 1.0),
                // Most are shorter than a dot.
                MarkKind::Checkpoint => ("checkpoint", HEIGHT - BOTTOM, 2.0),
            };
            let width = (to - from).max(least);
            let height = if mark.kind == MarkKind::Dip { HEIGHT - TOP - BOTTOM } else { BAR_HEIGHT };
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        }
        frame.draw_axes(&mut svg, self.x_name);
        for (place, line) in self.lines.iter().enumerate() {
            self.draw_line(&mut svg, &frame, place, line);
        }
        svg.push_str("</svg>");
        svg + &self.legend() + "</figure>"
    }

    /// The names of the lines, each behind a piece of its line, and those of the marks; empty if there is one
    /// line and no mark.
    fn legend(&self) -> String {
        let mut entries = Vec::new();
        if self.lines.len() > 1 {
            entries.extend(self.lines.iter().enumerate().map(|(place, line)| {
                format!(
                    "<svg class=\"key\" viewBox=\"0 0 30 8\" aria-hidden=\"true\"><line class=\"{}\" x1=\"0\" x2=\"30\" y1=\"4\" y2=\"4\"/></svg>{}",
                    line.class_at(place),
                    escape(&line.name)
                )
            }));
        }
        for (kind, class, name) in [
            (MarkKind::Dip, "mark", "dips"),
            (MarkKind::Checkpoint, "checkpoint", "checkpoints, says the server"),
        ] {
            if self.marks.iter().any(|mark| mark.kind == kind) {
                entries.push(format!("<span class=\"key {class}\"></span>{name}"));
            }
        }
        if entries.is_empty() {
            return String::new();
        }
        let entries: Vec<String> =
            entries.into_iter().map(|entry| format!("<span class=\"entry\">{entry}</span>")).collect();
        format!("<figcaption>{}</figcaption>", entries.join(" "))
    }

    /// As a file, with the title above and the names of the lines along the top; `None` if there is no point
    /// to draw.
    pub fn render_file(&self, style: &str) -> Option<String> {
        let frame = self.frame()?;
        let title = escape(&self.title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -44 {WIDTH} {:.0}\" role=\"img\"><title>{title}</title>\
             <style>{style}</style>\n<text x=\"0\" y=\"-28\">{title}</text>\n",
            HEIGHT + 44.0
        );
        frame.draw_axes(&mut svg, self.x_name);
        for (place, line) in self.lines.iter().enumerate() {
            self.draw_line(&mut svg, &frame, place, line);
            let (x, class) = (LEFT + LEGEND_WIDTH * place as f64, line.class_at(place));
            let _ = writeln!(
                svg,
                "<line class=\"{class}\" x1=\"{x}\" x2=\"{}\" y1=\"-8\" y2=\"-8\"/><text x=\"{}\" y=\"-4\">{}</text>",
                x + 16.0,
                x + 22.0,
                escape(&line.name)
            );
        }
        Some(svg + "</svg>\n")
    }

    /// The part of the plane that holds all points; `None` if there are none above the axis.
    fn frame(&self) -> Option<Frame> {
        let points = || self.lines.iter().flat_map(|line| &line.points).filter(|(x, _)| self.is_on_axis(*x));
        let x_from = points().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
        let x_to = points().map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max);
        let y_to = points().map(|(_, y)| *y).fold(0.0, f64::max);
        if !x_from.is_finite() || y_to <= 0.0 {
            return None;
        }
        let y_to = y_to.max(self.y_least);
        let y_step = tick_step(y_to, TICKS);
        Some(Frame { axis: self.x_axis, x_from, x_to, y_to: (y_to / y_step - 1e-9).ceil() * y_step, y_step })
    }

    fn is_on_axis(&self, x: f64) -> bool {
        self.x_axis == Axis::Linear || x > 0.0
    }

    fn draw_line(&self, svg: &mut String, frame: &Frame, place: usize, line: &Line) {
        let step = line.points.len().div_ceil(POINTS_MAX).max(1);
        let _ = write!(svg, "<polyline class=\"{}\" points=\"", line.class_at(place));
        // Of points that share a place on the screen, the lowest is drawn: a dip must not vanish.
        for part in line.points.chunks(step) {
            let lowest = part.iter().filter(|(x, _)| self.is_on_axis(*x)).min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((x, y)) = lowest {
                let _ = write!(svg, "{:.1},{:.1} ", frame.x(*x), frame.y(*y));
            }
        }
        svg.push_str("\"/>");
    }
}

/// Where values are on the drawing.
struct Frame {
    axis: Axis,
    x_from: f64,
    x_to: f64,
    y_to: f64,
    y_step: f64,
}

impl Frame {
    fn x(&self, x: f64) -> f64 {
        let place = match self.axis {
            Axis::Linear => (x - self.x_from) / (self.x_to - self.x_from).max(1e-9),
            Axis::Logarithmic => {
                (x.max(self.x_from) / self.x_from).ln() / (self.x_to / self.x_from).ln().max(1e-9)
            }
        };
        LEFT + place.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - (y / self.y_to).clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }

    fn draw_axes(&self, svg: &mut String, x_name: &str) {
        for step in 0..=(self.y_to / self.y_step).round() as u32 {
            let value = self.y_step * f64::from(step);
            let y = self.y(value);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                WIDTH - RIGHT
            );
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                number(value)
            );
        }
        for (x, text) in self.x_ticks() {
            let place = self.x(x);
            let (place, anchor) = if place > WIDTH - EDGE { (WIDTH - 2.0, "end") } else { (place, "middle") };
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>",
                HEIGHT - BOTTOM + 15.0
            );
        }
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{x_name}</text>",
            WIDTH - RIGHT,
            HEIGHT - 4.0
        );
    }

    fn x_ticks(&self) -> Vec<(f64, String)> {
        match self.axis {
            Axis::Linear => {
                let step = tick_step(self.x_to - self.x_from, TICKS);
                let (first, last) =
                    ((self.x_from / step).ceil() as i64, (self.x_to / step + 1e-9).floor() as i64);
                (first..=last).map(|tick| tick as f64 * step).map(|x| (x, number(x))).collect()
            }
            Axis::Logarithmic => {
                let powers = (self.x_from.log10().floor() as i32)..=(self.x_to.log10().ceil() as i32);
                let within = |x: &f64| (self.x_from..=self.x_to).contains(x);
                let steps = |factors: &'static [f64]| {
                    let all =
                        powers.clone().flat_map(|power| factors.iter().map(move |f| f * 10_f64.powi(power)));
                    all.filter(within).map(|x| (x, number(x))).collect::<Vec<_>>()
                };
                // A span of less than two powers has steps in between.
                let whole = steps(&[1.0]);
                if whole.len() > 2 { whole } else { steps(&[1.0, 2.0, 5.0]) }
            }
        }
    }
}

/// Text that is not taken for markup.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>, x_axis: Axis) -> String {
        let lines = vec![Line::new("<a>", points)];
        Chart { title: "t".into(), x_name: "s", x_axis, lines, marks: Vec::new(), y_least: 0.0 }.render()
    }

    #[test]
    fn a_line_goes_through_its_points() {
        let svg = chart(vec![(0.0, 0.0), (10.0, 100.0)], Axis::Linear);
        let (left, bottom) = (LEFT, HEIGHT - BOTTOM);
        let expected = format!("points=\"{left:.1},{bottom:.1} {:.1},{TOP:.1} \"", WIDTH - RIGHT);
        assert!(svg.contains(&expected), "{svg}");
    }

    #[test]
    fn a_chart_without_points_is_none() {
        assert_eq!(chart(vec![], Axis::Linear), "");
        assert_eq!(chart(vec![(0.0, 0.0)], Axis::Linear), "");
        assert_eq!(chart(vec![(0.0, 5.0)], Axis::Logarithmic), "", "0 is not on a logarithmic axis");
    }

    #[test]
    fn ticks_are_round_numbers_and_charts_share_a_scale() {
        let svg = chart(vec![(1.0, 10.0), (61.0, 123.0)], Axis::Linear);
        for tick in [">0<", ">50<", ">100<", ">150<", ">20<", ">40<", ">60<"] {
            assert!(svg.contains(tick), "{tick}: {svg}");
        }
        let lines = vec![Line::new("a", vec![(0.0, 1.0), (1.0, 2.0)])];
        let (title, marks) = ("t".to_owned(), Vec::new());
        let shared =
            Chart { title, x_name: "s", x_axis: Axis::Linear, lines, marks, y_least: 900.0 }.render();
        assert!(shared.contains(">1,000<"), "{shared}");
    }

    #[test]
    fn the_seventh_line_is_dashed_also_in_the_legend() {
        let lines = (0..7).map(|name| Line::new(name.to_string(), vec![(0.0, 1.0), (1.0, 2.0)])).collect();
        let (title, marks) = ("t".to_owned(), Vec::new());
        let svg = Chart { title, x_name: "s", x_axis: Axis::Linear, lines, marks, y_least: 0.0 }.render();
        assert_eq!(svg.matches("<polyline class=\"line c0 dash1\"").count(), 1, "{svg}");
        assert_eq!(svg.matches("<line class=\"line c0 dash1\"").count(), 1, "{svg}");
    }

    #[test]
    fn a_line_has_the_colour_and_the_dashes_that_it_is_given() {
        let line = |look| Line { look, ..Line::new("a", vec![(0.0, 1.0), (1.0, 2.0)]) };
        assert_eq!(line(Look::Stroke { colour: 2, dashes: 0 }).class_at(5), "line c2");
        assert_eq!(line(Look::Stroke { colour: 8, dashes: 9 }).class_at(5), "line c2 dash3");
        assert_eq!(line(Look::Class("l betree")).class_at(5), "l betree");
    }

    #[test]
    fn a_dip_of_one_point_in_many_is_drawn() {
        let points = (0..100_000).map(|x| (f64::from(x), if x == 70_001 { 0.0 } else { 100.0 })).collect();
        let svg = chart(points, Axis::Linear);
        assert!(svg.contains(&format!(",{:.1} ", HEIGHT - BOTTOM)), "the lowest point is on the axis");
        assert!(svg.len() < 60_000);
    }

    #[test]
    fn text_is_not_taken_for_markup() {
        assert_eq!(escape("<a \"b\" & c>"), "&lt;a &quot;b&quot; &amp; c&gt;");
    }
}
