// A process that opens an embedded queue and tells how it went.
import { openQueues } from '../../node_modules/.cache/ringneck-opening/src/queue/open.js';

const [folder] = process.argv.slice(2);
const log = { info() {}, warn() {}, error() {} };
try {
  await (await openQueues({ folder, log })).close();
  console.log('opened');
} catch (error) {
  console.log(`${error.name} ${error.message}`);
}
process.exit(0);
