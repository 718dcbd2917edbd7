import { useState } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { NightChart } from '../charts/night-chart.tsx';
import { type Sleep, tableOf } from '../charts/night-model.ts';
import { Figure } from '../parts/figure.tsx';
import { clock, hoursAndMinutes, offsetName } from '../parts/format.ts';

type Night = AnswerOf<'GET people/:id/night/:day'>;

/** The sleeps of a day, one at a time. */
export function NightCard({ night }: { night: Night }) {
  const [chosen, setChosen] = useState(0);
  const sleep = night.sleeps[chosen] ?? night.sleeps[0];
  if (!sleep) {
    return (
      <section class="card no-night" aria-label="The night">
        <p>{night.missing}</p>
      </section>
    );
  }
  const title = sleep.is_main ? 'The night' : nameOf(sleep);
  const isMoved = sleep.start_offset !== sleep.end_offset;
  const offsets = isMoved ? `${offsetName(sleep.start_offset)}, then ${offsetName(sleep.end_offset)}` : offsetName(sleep.start_offset);
  const times = `${clock(sleep.start, sleep.start_offset)} – ${clock(sleep.end, sleep.end_offset)}`;
  return (
    <Figure
      title={title}
      note={`${times}, ${night.id}’s clock (${offsets})`}
      finding={findingOf(sleep, isMoved)}
      table={() => tableOf(sleep)}
      sql={night.sql.night}
      file={`${night.id}-${night.day}-night`}
      class="night"
    >
      {night.sleeps.length > 1 && (
        <div class="tabs">
          {night.sleeps.map((one, index) => (
            <button key={one.sleep_id} type="button" aria-pressed={one === sleep} onClick={() => setChosen(index)}>
              {one.is_main ? 'Night' : nameOf(one)} {clock(one.start, one.start_offset)}
            </button>
          ))}
        </div>
      )}
      <NightChart sleep={sleep} label={`${title}, ${times}`} />
    </Figure>
  );
}

const nameOf = ({ type }: Sleep) => (type === 'late_nap' ? 'Nap' : 'Sleep');

function findingOf(sleep: Sleep, isMoved: boolean): string {
  const asleep = sleep.asleep === null ? 'Time asleep is not known' : `${hoursAndMinutes(sleep.asleep)} asleep`;
  const parts = [asleep];
  if (sleep.in_bed !== null) parts.push(`${hoursAndMinutes(sleep.in_bed)} in bed`);
  if (sleep.efficiency !== null) parts.push(`efficiency ${sleep.efficiency} %`);
  if (sleep.lowest_heart_rate !== null) parts.push(`lowest heart rate ${sleep.lowest_heart_rate}`);
  const clocks = isMoved ? ' Two rows of hours: the clock at bedtime and the clock on waking.' : '';
  return `${parts.join(', ')}. Hatched: nothing came for 10 minutes or more.${clocks}`;
}
