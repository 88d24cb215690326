//! A bar chart, as SVG: groups of bars with names below.

use std::{fs, path::Path};

use plotters::{
    chart::{ChartBuilder, SeriesLabelPosition},
    prelude::{IntoDrawingArea, Rectangle, SVGBackend},
    style::{Color as _, Palette as _, Palette99, WHITE},
};

use crate::data::Wrong;

/// Draws a group of bars for each name into `folder/file.svg`; a series has a bar in each group.
/// What is higher than `top` is cut off there.
pub fn bars(
    folder: &Path,
    file: &str,
    title: &str,
    names: &[&str],
    series: &[(String, Vec<f64>)],
    top: f64,
) -> Result<(), Wrong> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("{file}.svg"));
    let least = series
        .iter()
        .flat_map(|(_, values)| values)
        .copied()
        .fold(0.0, f64::min);
    let area = SVGBackend::new(&path, (1000, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(-0.5..names.len() as f64 - 0.5, least * 1.1..top)?;
    let name = |at: &f64| {
        let whole = (at - at.round()).abs() < 1e-6 && *at > -0.1;
        let name = names.get(at.round() as usize).filter(|_| whole);
        name.map_or_else(String::new, |name| (*name).to_owned())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .y_desc("percentage points")
        .x_labels(names.len() * 2)
        .x_label_style(("sans-serif", 10))
        .x_label_formatter(&name)
        .draw()?;
    let width = 0.8 / series.len().max(1) as f64;
    for (index, (label, values)) in series.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let bar = |(group, value): (usize, &f64)| {
            let left = group as f64 - 0.4 + width * index as f64;
            Rectangle::new(
                [(left, 0.0), (left + width * 0.9, value.min(top))],
                colour.filled(),
            )
        };
        chart
            .draw_series(values.iter().enumerate().map(bar))?
            .label(label)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    area.present()?;
    Ok(())
}
