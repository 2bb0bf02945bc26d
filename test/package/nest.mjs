import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { currentLease, DistributedLock, DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import scenario from './nest-scenario.cjs';

await scenario({ Injectable, Module, NestFactory, DistributedLockModule, memoryStore, copies: [{ DistributedLock, currentLease }] });
