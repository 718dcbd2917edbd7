import { createHash } from 'node:crypto';
import { escapeHtml } from '../../base/html.ts';
import { type Facts, type Language, type PageText, texts } from './texts.ts';

/** A page without a script, with the headers that keep it so. */
export interface Page {
  status: number;
  html: string;
  headers: Readonly<Record<string, string>>;
}

const STYLE = `
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 0 auto; padding: 1rem; color: #222; background: #fff; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: 1.15rem; margin-bottom: 0.3rem; }
.text { white-space: pre-wrap; border-left: 0.2rem solid #999; padding-left: 0.8rem; }
.notice { border: 1px solid #a60; padding: 0.5rem 0.8rem; }
button { font: inherit; padding: 0.8rem 1rem; width: 100%; margin: 0.8rem 0; box-sizing: border-box; }
`;

const STYLE_SOURCE = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;

/** What goes with every answer, whatever it is. */
export const GUARDED = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex, nofollow',
};

export interface InvitationFacts {
  /** Where its form goes. */
  path: string;
  scopes: readonly string[];
  study: { text: string } | undefined;
  /** It says something else than the person has seen. */
  hasChanged?: boolean;
  /** Where people sign in. */
  authorizeUrl: string;
}

/** The page of an invitation: who asks, for which data, and how to withdraw. `seen` is a hash of all that it says. */
export function invitationPage(
  language: Language,
  facts: Facts,
  { path, scopes, study, hasChanged, authorizeUrl }: InvitationFacts,
): Page & { seen: string } {
  const say = texts[language];
  const said = [
    heading(say.dataHeading),
    list(scopes.map(say.scope)),
    paragraph(say.dataNote(facts)),
    heading(say.withdrawHeading),
    paragraph(say.withdrawNote(facts)),
    study ? `${heading(say.studyHeading(facts))}\n<div class="text">${escapeHtml(study.text)}</div>` : '',
  ];
  const invitation = say.invitation(facts);
  const seen = createHash('sha256')
    .update(JSON.stringify([invitation, said, say.agree]))
    .digest('hex');
  const body = [
    hasChanged ? `<p class="notice">${escapeHtml(say.pageChanged)}</p>` : '',
    ...said,
    form(path, say.agree, { seen }),
    paragraph(say.disagree),
  ];
  // A browser follows the redirect after a form only to where the form may go, and a service may send on to an address of its own.
  return { ...pageOf(200, language, invitation, body, `'self' https: ${new URL(authorizeUrl).origin}`), seen };
}

/** The page of who has signed in. */
export function connectedPage(
  language: Language,
  facts: Facts,
  { scopes, areScopesTold, withdrawUrl }: { scopes: readonly string[]; areScopesTold: boolean; withdrawUrl: string },
): Page {
  const say = texts[language];
  return pageOf(200, language, say.connected(facts), [
    heading(areScopesTold ? say.allowedHeading : say.askedHeading),
    list(scopes.map(say.scope)),
    areScopesTold ? '' : paragraph(say.askedNote(facts)),
    heading(say.withdrawLinkHeading),
    paragraph(say.withdrawLinkNote),
    link(withdrawUrl, withdrawUrl),
  ]);
}

/** The page that asks whether somebody wants to withdraw. */
export function withdrawalPage(language: Language, facts: Facts, path: string): Page {
  const say = texts[language];
  return pageOf(200, language, say.withdrawal(facts), [form(path, say.withdraw, {})], "'self'");
}

/** @param given.path where its form goes that tries again to give the access back; undefined: that is done, or given up */
export function withdrawnPage(language: Language, facts: Facts, given: { isTakenBack: boolean; path: string | undefined }): Page {
  const say = texts[language];
  const note = given.isTakenBack ? '' : paragraph(say.notTakenBack(facts));
  if (given.path === undefined) return pageOf(200, language, say.withdrawn(facts), [note]);
  return pageOf(200, language, say.withdrawn(facts), [note, form(given.path, say.giveBack, {})], "'self'");
}

const STATUS = {
  pending: 202,
  closed: 404,
  refused: 200,
  failed: 503,
  textAway: 503,
  unfinished: 200,
  notAdmitted: 200,
  elsewhere: 400,
  enrolled: 200,
  unread: 409,
  another: 409,
  unrecognised: 409,
  busy: 429,
  foreign: 403,
  ended: 200,
  notWithdrawn: 503,
} as const;

/** A page that says one thing, with the way back to an invitation where that can be gone. */
export function sentencePage(what: keyof typeof STATUS, language: Language, facts: Facts, invitationPath?: string): Page {
  const say = texts[language];
  const back = invitationPath === undefined ? [] : [link(invitationPath, say.again)];
  const page = pageOf(STATUS[what], language, say[what](facts), back);
  // Without a script a page looks again by this alone.
  return what === 'pending' ? { ...page, headers: { ...page.headers, Refresh: '3' } } : page;
}

function pageOf(status: number, language: Language, { title, paragraphs }: PageText, body: readonly string[], formAction = "'none'"): Page {
  const html = `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${[...paragraphs.map(paragraph), ...body].filter(Boolean).join('\n')}
</main>
</body>
</html>
`;
  const policy = `default-src 'none'; style-src ${STYLE_SOURCE}; form-action ${formAction}; frame-ancestors 'none'; base-uri 'none'`;
  return { status, html, headers: { ...GUARDED, 'Content-Language': language, 'Content-Security-Policy': policy } };
}

const heading = (text: string) => `<h2>${escapeHtml(text)}</h2>`;
const paragraph = (text: string) => `<p>${escapeHtml(text)}</p>`;
const list = (items: readonly string[]) => `<ul>\n${items.map(item => `<li>${escapeHtml(item)}</li>`).join('\n')}\n</ul>`;
const link = (url: string, text: string) => `<p><a href="${escapeHtml(url)}" rel="noreferrer">${escapeHtml(text)}</a></p>`;

function form(path: string, button: string, hidden: Readonly<Record<string, string>>): string {
  const inputs = Object.entries(hidden).map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`);
  return [`<form method="post" action="${escapeHtml(path)}">`, ...inputs, `<button>${escapeHtml(button)}</button>`, '</form>'].join('\n');
}
