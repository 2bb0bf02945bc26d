// An instance of the sample app that also sells without its lock and under two that are wrong, in sales whose length is set.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setTimeout as pause } from 'node:timers/promises';
import { AppModule } from '../../../sample-app/src/app.module.js';
import { Packer } from '../../../sample-app/src/stock/packer.js';
import { settings } from '../settings.js';
import { Versions } from './versions.js';
import { VersionsController } from './versions.controller.js';

@Module({ imports: [AppModule], controllers: [VersionsController], providers: [Versions] })
class DemoModule {}

const app = await NestFactory.create(DemoModule, { return503OnClosing: true });
let sales = 0;
app.get(Packer, { strict: false }).pack = () => pause(++sales % 20 === 0 ? settings.slowWork : settings.work);
app.enableShutdownHooks(['SIGTERM', 'SIGINT'], { useProcessExit: true });
await app.listen(process.env.PORT ?? 3000);
console.log(`The shop is open at ${await app.getUrl()}`);
