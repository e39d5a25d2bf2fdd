//! Curves as SVG: how a figure grows with what was there before.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::Error;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Space for labels, on each side.
const MARGIN: f64 = 64.0;

const COLORS: [&str; 4] = ["#1f5fa8", "#c2452d", "#2f8a4c", "#7a4fa3"];

/// A drawing of one or more lines over the same axis.
#[derive(Debug, Clone)]
pub struct Curve {
    /// What it shows.
    pub title: String,
    /// What is on the horizontal axis, which is logarithmic.
    pub x: String,
    /// What is on the vertical axis, which begins at 0.
    pub y: String,
    /// Names of the lines with their points.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl Curve {
    /// Writes the drawing.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        Ok(fs::write(path, self.svg()?)?)
    }

    fn svg(&self) -> Result<String, Error> {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let low = points().map(|(x, _)| x.log10()).fold(f64::INFINITY, f64::min);
        let high = points().map(|(x, _)| x.log10()).fold(f64::NEG_INFINITY, f64::max);
        let most = points().map(|(_, y)| *y).fold(f64::MIN_POSITIVE, f64::max) * 1.1;
        let across = |x: f64| {
            MARGIN + (x.log10() - low) / (high - low).max(f64::EPSILON) * (WIDTH - 2.0 * MARGIN)
        };
        let up = |y: f64| HEIGHT - MARGIN - y / most * (HEIGHT - 2.0 * MARGIN);
        let (left, right, bottom) = (MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        text(&mut svg, (WIDTH / 2.0, 24.0), "middle", &self.title)?;
        text(&mut svg, (WIDTH / 2.0, HEIGHT - 16.0), "middle", &self.x)?;
        text(&mut svg, (left - 8.0, left - 16.0), "start", &self.y)?;
        for part in 0..=4 {
            let y = most * f64::from(part) / 4.0;
            line(&mut svg, &[(left, up(y)), (right, up(y))], "#dddddd")?;
            text(&mut svg, (left - 8.0, up(y) + 4.0), "end", &short(y))?;
        }
        let mut marks: Vec<f64> = points().map(|(x, _)| *x).collect();
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        for x in marks {
            text(&mut svg, (across(x), bottom + 18.0), "middle", &short(x))?;
        }
        for (number, (name, points)) in self.lines.iter().enumerate() {
            let color = COLORS[number % COLORS.len()];
            let points: Vec<_> = points.iter().map(|(x, y)| (across(*x), up(*y))).collect();
            line(&mut svg, &points, color)?;
            for (x, y) in &points {
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>")?;
            }
            if let Some((x, y)) = points.last() {
                text(&mut svg, (*x, y - 8.0), "end", name)?;
            }
        }
        svg.push_str("</svg>\n");
        Ok(svg)
    }
}

fn line(svg: &mut String, points: &[(f64, f64)], color: &str) -> Result<(), Error> {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let points = points.join(" ");
    writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{color}\"/>")?;
    Ok(())
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) -> Result<(), Error> {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")?;
    Ok(())
}

fn short(number: f64) -> String {
    if number >= 1_000_000.0 {
        format!("{:.0}M", number / 1_000_000.0)
    } else if number >= 1_000.0 {
        format!("{:.0}k", number / 1_000.0)
    } else if number >= 10.0 || number == 0.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_point_is_the_highest_and_every_point_is_inside() {
        let lines = vec![("CPU".to_owned(), vec![(10.0, 1.0), (100.0, 4.0), (1_000.0, 2.0)])];
        let curve = Curve { title: "a < b".into(), x: "turn".into(), y: "ms".into(), lines };
        let svg = curve.svg().unwrap_or_default();
        let places: Vec<(f64, f64)> = svg
            .lines()
            .filter_map(|line| line.strip_prefix("<circle cx=\""))
            .filter_map(|line| {
                let mut numbers = line.split('"').filter_map(|word| word.parse().ok());
                Some((numbers.next()?, numbers.next()?))
            })
            .collect();
        assert_eq!(places.len(), 3);
        assert!(places[1].1 < places[2].1 && places[2].1 < places[0].1, "{places:?}");
        let inside = |(x, y): &(f64, f64)| (0.0..WIDTH).contains(x) && (0.0..HEIGHT).contains(y);
        assert!(places.iter().all(inside), "{places:?}");
        assert!(svg.contains("a &lt; b"));
    }
}
