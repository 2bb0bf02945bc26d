// Says it is ready, echoes what it is told, ends with the code it is told.
import { tellParent, type ChildMessage } from './child.js';

process.on('message', (message: ChildMessage & { code?: number }) => {
  if (message.type === 'exit') {
    console.error('leaving');
    process.exit(message.code);
  }
  tellParent({ ...message, type: 'echo' });
});
tellParent({ type: 'ready', args: process.argv.slice(2), colour: process.env.COLOUR });
