import charts from '../charts/charts.css?inline';
import raster from '../charts/raster.css?inline';
import figure from '../parts/figure.css?inline';
import page from '../style.css?inline';
import paper from './report.css?inline';

export const styles = [page, figure, charts, raster, paper].join('\n');
