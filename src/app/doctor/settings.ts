import type { Settings } from '../../base/config.ts';
import { messageOf } from '../../base/errors.ts';
import { isPrivateWay } from '../../base/setting.ts';
import { withoutQuery } from '../../sync/subscriptions/callback-url.ts';
import { readStudyText } from '../enrolment/study-text.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

/** What is set, and what of it may not be what was meant. */
export function checkSettings(settings: Settings): CheckResult[] {
  const { serviceUrl, webhooks, signatureWindow, unknown, readable } = settings;
  const results = [
    ...unknown.map(said => warn('settings', said, 'correct its name, or unset it')),
    ...readable.map(({ message, fix }) => warn('settings', message, fix)),
  ];
  if (!serviceUrl) {
    const fix = 'ringneck init asks for it and writes .env; or set it to the base address of the service, as http://127.0.0.1:4000';
    results.push(fail('settings', 'RINGNECK_SERVICE_URL is not set: there is nobody to ask', fix));
  }
  if (webhooks) {
    if (!isPrivateWay(webhooks.callbackUrl)) {
      const fix = 'put a reverse proxy with TLS in front, and give RINGNECK_CALLBACK_URL its https:// address';
      results.push(warn('settings', `events come to ${withoutQuery(webhooks.callbackUrl)} unencrypted`, fix));
    }
    if (signatureWindow === 0) {
      results.push(warn('settings', 'RINGNECK_SIGNATURE_WINDOW is 0: an old event that is sent again is taken', 'leave it at 300'));
    }
  }
  const noText = whyNoStudyText(settings);
  if (noText !== undefined) results.push(warn('settings', noText, 'put the file back: until then every link to sign in shows an error'));
  if (!results.length) results.push(ok('settings', 'all are understood'));
  if (!webhooks) results.push(ok('settings', 'webhooks are not configured: changes are found by sweeps'));
  return results;
}

function whyNoStudyText({ enrolment }: Settings): string | undefined {
  try {
    if (enrolment) readStudyText(enrolment);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
