import 'reflect-metadata';
import * as common from '@nestjs/common';
import * as core from '@nestjs/core';
import * as lock from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import scenario from './http-scenario.cjs';

await scenario({ common, core, lock, memoryStore, redisStore });
