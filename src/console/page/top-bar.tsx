import type { AnswerOf } from '../api/routes.ts';
import { Keys } from './keys.tsx';
import { usePlace } from './location.ts';
import { Fresh } from './parts/connection.tsx';
import { Link } from './parts/link.tsx';
import { SignOut } from './parts/sign-out.tsx';

/** The last address of a person in this tab. */
let lastPerson: string | undefined;

/** Where one may go, and how fresh what is shown is. */
export function TopBar({ session }: { session: AnswerOf<'GET session'> }) {
  const { path } = usePlace();
  if (path.startsWith('/people/')) lastPerson = path;
  return (
    <header class="bar">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <span class="brand">Ringneck</span>
      <nav aria-label="Screens">
        <Link to="/" current={path === '/'}>
          Overview
        </Link>
        <Link to="/coverage" current={path === '/coverage'}>
          Coverage
        </Link>
        <Link to="/sql" current={path === '/sql'}>
          SQL
        </Link>
        {session.role !== 'person' && (
          <Link to="/operations" current={path === '/operations'}>
            Operations
          </Link>
        )}
      </nav>
      <Fresh session={session} />
      <Keys lastPerson={lastPerson} hasOperations={session.role !== 'person'} />
      <span class="role">{session.role}</span>
      <SignOut />
    </header>
  );
}
