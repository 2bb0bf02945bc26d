import 'reflect-metadata';
import * as common from '@nestjs/common';
import * as core from '@nestjs/core';
import * as fastify from '@nestjs/platform-fastify';
import * as terminus from '@nestjs/terminus';
import * as lock from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { LockHealthIndicator } from 'nestjs-distributed-lock/terminus';
import scenario from './health-scenario.cjs';

await scenario({ common, core, fastify, terminus, lock, redisStore, LockHealthIndicator });
