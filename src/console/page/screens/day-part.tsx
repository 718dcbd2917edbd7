import type { AnswerOf } from '../../api/routes.ts';
import { DayChart } from '../charts/day-chart.tsx';
import { bucketsOf, type Day, type DayEvent, heartRange, offsetAt, tableOf, tagName, zonesInView } from '../charts/day-model.ts';
import { UsualTable } from '../charts/usual-chart.tsx';
import { Figure } from '../parts/figure.tsx';
import { clock, dayName, localText, minutesText, offsetName } from '../parts/format.ts';
import { DAY_METRICS } from '../parts/metrics.ts';
import { Shown } from '../parts/state.tsx';
import type { Answered } from '../parts/use-answer.ts';

type Night = AnswerOf<'GET people/:id/night/:day'>;

/** The day: heart rate, movement and what happened, from midnight to midnight of the person's clock. */
export function DayPart({ night, day: answer }: { night: Night; day: Answered<Day> }) {
  return (
    <section class="person-grid below" aria-label="The day">
      <Shown of={answer}>{day => <DayCard day={day} />}</Shown>
      <section class="card">
        <h2>The day against the usual</h2>
        <UsualTable usual={night.usual} metrics={DAY_METRICS} />
      </section>
    </section>
  );
}

function DayCard({ day }: { day: Day }) {
  const clocks = day.clocks.map(({ offset }) => offsetName(offset)).join(', then ');
  return (
    <Figure
      title="The day"
      note={`${dayName(day.day)}, ${day.id}’s clock (${day.is_clock_known ? clocks : 'UTC: no offset is known'})`}
      finding={findingOf(day)}
      table={() => tableOf(day)}
      sql={day.sql}
      file={`${day.id}-${day.day}-day`}
    >
      <DayChart day={day} label={`The day, ${dayName(day.day)}`} />
      <EventList day={day} />
    </Figure>
  );
}

function EventList({ day }: { day: Day }) {
  const told = day.events.filter(({ kind }) => kind !== 'sleep');
  if (!told.length) return null;
  return (
    <ul class="event-list">
      {told.map(event => (
        <li key={`${event.kind} ${event.start} ${event.name}`}>{tellEvent(day, event)}</li>
      ))}
    </ul>
  );
}

function tellEvent(day: Day, { kind, start, end, name, detail }: DayEvent): string {
  const words = kind === 'tag' ? tagName(name) : name.replaceAll('_', ' ');
  const before = start < day.start ? `since ${localText(start, offsetAt(day, start))}` : clock(start, offsetAt(day, start));
  const goesOn = kind === 'rest_mode' && (end === null || end > day.end);
  const isLater = end !== null && end > day.end;
  const after = end === null || end === start ? '' : ` – ${(isLater ? localText : clock)(end, offsetAt(day, end))}`;
  const times = goesOn ? `${before}, goes on:` : `${before}${after}`;
  return `${times} ${words}${detail ? `: ${detail}` : ''}`;
}

function findingOf(day: Day): string {
  const medians = day.heart_rate.median.filter(median => median !== null);
  const parts: string[] = [];
  if (medians.length) {
    const lows = day.heart_rate.lowest.filter(low => low !== null);
    const highs = day.heart_rate.highest.filter(high => high !== null);
    parts.push(`Heart rate from ${Math.min(...lows)} to ${Math.max(...highs)} beats/min; drawn: median and range of 5 minutes.`);
  } else parts.push('No heart rate came for this day.');
  const notWorn = day.non_wear.seconds.reduce((sum, seconds) => sum + seconds, 0);
  if (notWorn > 0) parts.push(`Not worn for ${minutesText(notWorn)}.`);
  parts.push(tellZones(day));
  parts.push('Hatched: nothing came for 10 minutes or more.');
  if (day.until < day.end) parts.push(`From ${clock(day.until, offsetAt(day, day.until))} on the day is still to come.`);
  const hours = (day.end - day.start) / 3600;
  if (day.clocks.length > 1)
    parts.push(
      `The clock moved, and the day has ${Number(hours.toFixed(2))} hours; the seam is where the first document tells the new clock.`,
    );
  return parts.join(' ');
}

/** Which lines of zones there are to see, of which maximum. */
function tellZones(day: Day): string {
  if (!day.maximum) return 'No maximum is known: no zones.';
  const maximum = `a maximum of ${Math.round(day.maximum.heart_rate)}, ${day.maximum.origin}`;
  const shares = zonesInView(day.maximum.heart_rate, heartRange(bucketsOf(day))).map(share => Math.round(share * 100));
  const [first, last] = [shares[0], shares.at(-1)];
  if (first === undefined) return `No zone of ${maximum}, begins in what is drawn.`;
  return `Dotted: ${first === last ? first : `${first} to ${last}`} % of ${maximum}.`;
}
