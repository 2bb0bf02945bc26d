import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const app = await NestFactory.create(AppModule);
app.enableShutdownHooks(); // a stopping app waits for its locked methods
await app.listen(process.env.PORT ?? 3000);
console.log(`The shop is open at ${await app.getUrl()}`);
