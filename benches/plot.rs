//! Plots of replays, as SVG.

use std::{error::Error, fs, path::Path};

use plotters::{
    chart::{ChartBuilder, SeriesLabelPosition},
    prelude::{Circle, IntoDrawingArea, LineSeries, SVGBackend},
    style::{Color as _, Palette as _, Palette99, WHITE},
};

/// A named line through points.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws lines with a legend into `folder/name.svg`. Names of steps stand under whole numbers of the
/// first axis, when there are any.
pub(crate) fn lines(
    folder: &Path,
    name: &str,
    title: &str,
    axes: [&str; 2],
    steps: &[&str],
    lines: &[Line],
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("{name}.svg"));
    let points = || lines.iter().flat_map(|line| &line.points);
    let range = |value: &dyn Fn(&(f64, f64)) -> f64| {
        let low = points().map(value).fold(f64::INFINITY, f64::min);
        let high = points().map(value).fold(f64::NEG_INFINITY, f64::max);
        let margin = ((high - low) * 0.05).max(1e-3);
        low - margin..high + margin
    };
    let area = SVGBackend::new(&path, (900, 500)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(range(&|point| point.0), range(&|point| point.1))?;
    let step = |at: &f64| {
        let whole = (at - at.round()).abs() < 1e-6;
        let step = steps.get(at.round() as usize).filter(|_| whole);
        match step {
            Some(step) => (*step).to_owned(),
            None if steps.is_empty() => format!("{at:.2}"),
            None => String::new(),
        }
    };
    chart
        .configure_mesh()
        .x_desc(axes[0])
        .y_desc(axes[1])
        .x_labels(if steps.is_empty() { 10 } else { steps.len() })
        .x_label_formatter(&step)
        .draw()?;
    for (index, line) in lines.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let drawn = chart.draw_series(LineSeries::new(
            line.points.iter().copied(),
            colour.stroke_width(2),
        ))?;
        drawn
            .label(&line.name)
            .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        let dots = line
            .points
            .iter()
            .map(|point| Circle::new(*point, 3, colour.filled()));
        chart.draw_series(dots)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(Palette99::pick(7).to_rgba())
        .draw()?;
    area.present()?;
    Ok(())
}
