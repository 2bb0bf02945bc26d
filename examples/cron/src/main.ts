import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const app = await NestFactory.createApplicationContext(AppModule);
app.enableShutdownHooks(); // a stopping app waits for its locked methods
