import { NestFactory } from '@nestjs/core';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppModule } from './app.module.js';
import { config } from './config.js';

const app = await NestFactory.create(AppModule, { return503OnClosing: true });
// A stop that was asked for is a success: exit code 0 once all is drained.
app.enableShutdownHooks(['SIGTERM', 'SIGINT'], { useProcessExit: true });
const server = (await app.listen(config.port)) as Server;
const { port } = server.address() as AddressInfo;
console.log(`The shop is open at http://localhost:${port}`);
process.send?.({ type: 'listening', port });
