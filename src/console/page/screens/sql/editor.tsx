import { autocompletion, type CompletionContext, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { history, historyKeymap, standardKeymap } from '@codemirror/commands';
import { keywordCompletionSource, SQLDialect, sql } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, syntaxHighlighting, syntaxTree } from '@codemirror/language';
import { Annotation, EditorState } from '@codemirror/state';
import { EditorView, keymap, placeholder, tooltips } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'preact/hooks';
import type { Catalogue } from '../../../api/sql.ts';
import { optionsAt } from './complete.ts';

interface EditorProps {
  /** Put in whenever it is another object: what is written comes by `onText` alone. */
  given: { text: string };
  onText(text: string): void;
  entries: Catalogue['entries'];
}

/** A text that was put in, not written. */
const isGiven = Annotation.define<boolean>();

/** Writes SQL, and knows what there is to ask. In a shadow root: there its styles need no place in the page's policy. */
export function Editor({ given, onText, entries }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const now = useRef({ entries, onText });
  now.current = { entries, onText };
  useEffect(() => {
    if (!host.current) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open', delegatesFocus: true });
    const tell = EditorView.updateListener.of(({ docChanged, state, transactions }) => {
      if (docChanged && !transactions.some(one => one.annotation(isGiven))) now.current.onText(state.doc.toString());
    });
    const created = new EditorView({
      root,
      parent: root,
      state: EditorState.create({ doc: given.text, extensions: [...extensions(() => now.current.entries), tell] }),
    });
    view.current = created;
    // On a phone the keyboard would cover half of the page.
    if (!matchMedia('(pointer: coarse)').matches) created.focus();
    return () => created.destroy();
  }, []);
  useEffect(() => {
    const { current } = view;
    const { text } = given;
    if (!current || current.state.doc.toString() === text) return;
    const changes = { from: 0, to: current.state.doc.length, insert: text };
    current.dispatch({ changes, selection: { anchor: text.length }, annotations: isGiven.of(true) });
    current.focus();
  }, [given]);
  return <div class="sql-editor" ref={host} />;
}

function extensions(entries: () => Catalogue['entries']) {
  const ofCatalogue = ({ state, pos, explicit }: CompletionContext) => {
    if (/String|Comment/.test(syntaxTree(state).resolveInner(pos, -1).name)) return null;
    const found = optionsAt(entries(), state.doc.toString(), pos);
    if (!found || (found.from === pos && !explicit && !/[.\s]$/.test(state.sliceDoc(0, pos)))) return null;
    return { from: found.from, options: found.options, validFor: /^\w*$/ };
  };
  return [
    history(),
    closeBrackets(),
    bracketMatching(),
    sql({ dialect: DUCKDB }),
    DUCKDB.language.data.of({ autocomplete: keywordCompletionSource(DUCKDB, true) }),
    DUCKDB.language.data.of({ autocomplete: ofCatalogue }),
    autocompletion({ icons: false }),
    tooltips({ position: 'absolute' }),
    syntaxHighlighting(HIGHLIGHT),
    THEME,
    EditorView.lineWrapping,
    placeholder('SELECT … FROM daily. Names are completed as you type; Ctrl-Enter runs it.'),
    EditorView.domEventHandlers({ beforeinput: typeOver }),
    EditorView.contentAttributes.of({ 'aria-label': 'SQL', spellcheck: 'false', autocapitalize: 'off' }),
    keymap.of([...closeBracketsKeymap, ...completionKeymap, ...standardKeymap, ...historyKeymap]),
  ];
}

/** A browser that types over coloured words by itself writes their style into the text, which the page's policy forbids. */
function typeOver(event: InputEvent, view: EditorView): boolean {
  const { from, to, empty } = view.state.selection.main;
  const { inputType, data, isComposing } = event;
  if (empty || inputType !== 'insertText' || data === null || isComposing) return false;
  const typed = () => view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true });
  if (!view.state.facet(EditorView.inputHandler).some(handle => handle(view, from, to, data, typed))) view.dispatch(typed());
  event.preventDefault();
  return true;
}

const DUCKDB = SQLDialect.define({
  keywords:
    'all and any as asc asof between by case cast column columns count cross cube current desc describe distinct else end except exclude ' +
    'exists explain analyze filter first following from full glob group grouping having if ignore ilike in inner intersect interval into ' +
    'is join lambda last lateral left like limit macro materialized natural not nulls offset on or order outer over partition pivot ' +
    'positional preceding qualify range recursive rename replace respect right rollup row rows sample select semi anti sets similar some ' +
    'show summarize table tablesample then ties to try_cast unbounded union unpivot using values when where window with within without',
  types:
    'bigint blob boolean date decimal double float hugeint integer json list map numeric real smallint struct time timestamp timestamptz ' +
    'tinyint ubigint uinteger usmallint utinyint uuid varchar',
  builtin: '',
  doubleDollarQuotedStrings: true,
  unquotedBitLiterals: false,
  operatorChars: '*+-%<>!=&|^/~?:',
});

const HIGHLIGHT = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--link)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--rem-text)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--heart)' },
  { tag: tags.comment, color: 'var(--muted)' },
]);

const THEME = EditorView.theme({
  '&': { color: 'var(--ink)', background: 'var(--card)', fontSize: '13px', maxHeight: '45vh', borderRadius: '12px' },
  '&.cm-focused': { outline: '2px solid var(--link)', outlineOffset: '2px' },
  '.cm-scroller': { fontFamily: 'ui-monospace, monospace', lineHeight: '1.55' },
  '.cm-content': { padding: '16px', minHeight: '172px', caretColor: 'var(--ink)' },
  '.cm-placeholder': { color: 'var(--second)' },
  '.cm-matchingBracket': { background: 'var(--band)', outline: '1px solid var(--line)' },
  '.cm-tooltip': { background: 'var(--card)', border: '1px solid var(--line)', borderRadius: '8px', color: 'var(--ink)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'inherit', maxHeight: '220px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '4px 8px', minHeight: '24px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { background: 'var(--band)', color: 'var(--ink)' },
  '.cm-completionDetail': { color: 'var(--second)', fontStyle: 'normal', float: 'right' },
  '.cm-completionInfo': { padding: '8px', maxWidth: '320px', color: 'var(--second)' },
});
