import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';

const Context = createContext<AnswerOf<'GET session'> | undefined>(undefined);

export const SessionProvider = Context.Provider;

/** Who looks; undefined before it is known. */
export const useSession = (): AnswerOf<'GET session'> | undefined => useContext(Context);
