import { renderToString } from 'preact-render-to-string';
import type { RenderReport, Report } from '../../api/report.ts';
import { TrendDrawing } from '../charts/trend-chart.tsx';
import { pointsOf, type Trend } from '../charts/trend-model.ts';
import { MARKED } from '../charts/usual-chart.tsx';
import { isMetric, type Metric, metricText, wordsOf } from '../parts/metrics.ts';
import { Sentence } from '../parts/sentence.tsx';
import { Nights } from './nights.tsx';
import { styles } from './styles.ts';

/** Nothing is run and nothing is fetched, whatever a text may hold. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

/** A page of paper: the same charts, without a script and without anything from elsewhere. */
export const renderReport: RenderReport = report =>
  `<!doctype html>\n${renderToString(<Page report={report} />).replace('<style></style>', () => `<style>${styles}</style>`)}\n`;

function Page({ report }: { report: Report }) {
  const { id, name } = report;
  const beside = besideOf(report.trends.length);
  const height = report.trends.length > beside ? HEIGHT : ONE_ROW;
  return (
    <html lang="en" data-theme="light">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content={POLICY} />
        <meta name="viewport" content="width=device-width" />
        <meta name="referrer" content="no-referrer" />
        <title>{`${id}, ${name} – Ringneck`}</title>
        <style />
      </head>
      <body>
        <main>
          <header>
            <h1>
              {id} · {name}
            </h1>
            <p class="second">{report.made}</p>
          </header>
          <Sentence of={report.sentence} />
          <Nights report={report} />
          <section class="trends" aria-label="Trends" data-beside={beside}>
            {report.trends.map(trend => (
              <TrendFigure key={trend.metric} trend={trend} beside={beside} height={height} from={report.from} to={report.to} />
            ))}
          </section>
          <div class="notes">
            <Notes title="Unusual" lines={report.notes.unusual} />
            <Notes title="Missing" lines={report.notes.missing} />
            <Notes title="How it was measured" lines={report.notes.measured} />
          </div>
        </main>
      </body>
    </html>
  );
}

function Notes({ title, lines }: { title: string; lines: readonly string[] }) {
  return (
    <section>
      <h2>{title}</h2>
      {lines.map(line => (
        <p key={line}>{line}</p>
      ))}
    </section>
  );
}

/** How many trends stand beside each other, so that they fill the width: at most three. */
const besideOf = (count: number) => (count === 4 ? 2 : Math.min(3, count));

/** Pixels: of the width of A4, between neighbours, and of the height of two rows, or of the only one. */
const WIDTH = 703;
const GAP = 14;
const HEIGHT = 114;
const ONE_ROW = 230;

interface TrendFigureProps {
  trend: Trend;
  beside: number;
  height: number;
  from: string;
  to: string;
}

function TrendFigure({ trend, beside, height, from, to }: TrendFigureProps) {
  const { metric } = trend;
  if (!isMetric(metric)) return null;
  const { name, unit } = wordsOf(metric);
  return (
    <figure>
      <figcaption>
        <h2>
          {name}
          {unit && <span class="second"> {unit}</span>}
        </h2>
        <p class="second">{findingOf(metric, trend)}</p>
      </figcaption>
      <div class="plot">
        <TrendDrawing
          {...{ metric, from, to }}
          points={pointsOf(trend, from, to)}
          width={Math.floor((WIDTH - GAP * (beside - 1)) / beside)}
          height={height}
        />
      </div>
    </figure>
  );
}

function findingOf(metric: Metric, { value, z }: Trend): string {
  const known = value.filter(one => one !== null);
  if (!known.length) return 'no value';
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const far = z.filter(one => one !== null && Math.abs(one) >= MARKED).length;
  const range = least === most ? metricText(metric, least) : `${metricText(metric, least)} to ${metricText(metric, most)}`;
  return `${range}${far ? `, ${far} ◆` : ''}`;
}
