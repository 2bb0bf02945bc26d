import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const app = await NestFactory.create(AppModule, { return503OnClosing: true });
// On a signal calls in flight are answered, their locks are released, and the exit code is 0.
app.enableShutdownHooks(['SIGTERM', 'SIGINT'], { useProcessExit: true });
await app.listen(process.env.PORT ?? 3000);
console.log(`The shop is open at ${await app.getUrl()}`);
