import { render } from 'preact';
import { useState } from 'preact/hooks';
import { personOf } from './asked.ts';
import { usePlace } from './location.ts';
import './parts/figure.css';
import { Hatch } from './parts/hatch.tsx';
import { lazy } from './parts/lazy.tsx';
import { Link } from './parts/link.tsx';
import { SessionProvider } from './parts/session.tsx';
import { Shown } from './parts/state.tsx';
import { chosenTheme, setTheme } from './parts/theme.ts';
import { useAnswer } from './parts/use-answer.ts';
import { Enter, SessionOver } from './screens/enter.tsx';
import { Overview } from './screens/overview.tsx';
import { Person } from './screens/person.tsx';
import { keepHistoryOf } from './screens/sql/history.ts';
import { TopBar } from './top-bar.tsx';

const Raster = lazy(async () => (await import('./screens/raster.tsx')).Raster);
const Coverage = lazy(async () => (await import('./screens/coverage.tsx')).Coverage);
const Operations = lazy(async () => (await import('./screens/operations.tsx')).Operations);
// With the editor it is larger than all else.
const Sql = lazy(async () => (await import('./screens/sql/sql-screen.tsx')).SqlScreen);

/** Who may not look is told how to come in; all others see the screen of the address. */
function Page() {
  const { path } = usePlace();
  const [entered, setEntered] = useState(0);
  if (path === '/enter') return <Enter onEntered={() => setEntered(entered + 1)} />;
  return <Inside key={entered} />;
}

function Inside() {
  const session = useAnswer('GET session', {});
  if (session.error?.kind === 'session') return <SessionOver message={session.error.message} />;
  // Before a screen shows what was written.
  if (session.answer) keepHistoryOf(session.answer);
  // A screen asks at once, not when it is known who looks: who may not is refused either way.
  return (
    <SessionProvider value={session.answer}>
      <Hatch />
      {session.answer ? <TopBar session={session.answer} /> : <header class="bar" />}
      {session.error && <Shown of={session}>{() => null}</Shown>}
      {(session.answer || session.isLoading) && (
        <main id="main" tabIndex={-1}>
          <Screen />
        </main>
      )}
    </SessionProvider>
  );
}

function Screen() {
  const { path } = usePlace();
  if (path === '/') return <Overview />;
  if (path === '/sql') return <Sql />;
  const person = personOf(path);
  if (person !== undefined) return <Person key={person} id={person} />;
  const raster = personOf(path, '/raster');
  if (raster !== undefined) return <Raster key={raster} id={raster} />;
  if (path === '/coverage') return <Coverage />;
  if (path === '/operations') return <Operations />;
  return (
    <>
      <h1>There is nothing at this address.</h1>
      <p>
        <Link to="/">Overview</Link>
      </p>
    </>
  );
}

setTheme(chosenTheme());
const root = document.getElementById('page');
if (root) render(<Page />, root);
