import { applyDecorators, Body, Controller, Get, HttpCode, Param, ParseIntPipe, Post, Query } from '@nestjs/common';
import { ApiBody, ApiOkResponse, ApiOperation, ApiProperty, ApiQuery, ApiResponse, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import type { DistributedLockOptions } from 'nestjs-distributed-lock';
import { ADAPTERS, serve, type Adapter } from './http-app.js';
import { key, lockAmong, LONG, place, type Order } from './place.js';

class Item {
  @ApiProperty({ example: 'apple' })
  sku!: string;
  @ApiProperty({ minimum: 1 })
  units!: number;
}

type Kind = Order | 'none';

/** The same controller, under the same name, with its locks above or below, or without any. */
function stock(kind: Kind) {
  const among = (options: DistributedLockOptions, ...others: MethodDecorator[]): MethodDecorator =>
    kind === 'none' ? applyDecorators(...others) : (lockAmong(kind, { ...LONG, ...options }, ...others) as MethodDecorator);

  @Controller('stock')
  class StockController {
    @among(
      { value: 'read', key: (id: string) => id },
      Get(':id'),
      ApiOperation({ summary: 'Reads', operationId: 'readStock' }),
      ApiQuery({ name: 'unit', enum: ['kg', 'piece'], required: false }),
      ApiOkResponse({ type: Item }),
      ApiResponse({ status: 423, description: 'Another is at it' }),
    )
    async read(@Param('id', ParseIntPipe) id: number, @Query('unit') unit?: string) {
      return { id, unit: unit ?? 'piece', key: key() };
    }

    @among({ value: 'add' }, Post(), HttpCode(202), ApiBody({ type: [Item] }))
    async add(@Body() items: Item[]): Promise<{ added: number; key: string }> {
      return { added: items.length, key: key() };
    }

    /** Nothing is said of it: all is inferred. */
    @among({ value: 'inferred' }, Post(':shelf/items'))
    async inferred(@Param('shelf') _shelf: string, @Query('fast') _fast: boolean, @Body() item: Item): Promise<Item> {
      return item;
    }
  }
  return StockController;
}

async function documentOf(adapter: Adapter, kind: Kind) {
  const served = await serve(adapter, { controllers: [stock(kind)] }, {}, (app) => {
    const config = new DocumentBuilder().setTitle('Stock').build();
    SwaggerModule.setup('api', app, () => SwaggerModule.createDocument(app, config), { ui: false });
  });
  const { status, body } = await served.ask('api-json');
  expect(status).toBe(200);
  return { ...served, document: body as { paths: Record<string, Record<string, object>>; components: object } };
}

place('HTTP', '@nestjs/swagger: @ApiOperation, @ApiResponse and inferred parameters, on Express and Fastify', (order) => {
  it.each(ADAPTERS)('serves the same document as an app without locks, and locks once what it documents (%s)', async (adapter) => {
    const { document, ask, post, acquired } = await documentOf(adapter, order);
    expect(document).toEqual((await documentOf(adapter, 'none')).document);
    expect(document.paths['/stock/{id}']?.get).toMatchObject({
      operationId: 'readStock',
      parameters: expect.arrayContaining([expect.objectContaining({ name: 'id', in: 'path', schema: { type: 'number' } })]),
      responses: { 200: expect.anything(), 423: { description: 'Another is at it' } },
    });
    expect(document.paths['/stock/{shelf}/items']?.post).toMatchObject({
      parameters: [{ name: 'shelf' }, { name: 'fast', schema: { type: 'boolean' } }],
      requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Item' } } } },
    });
    expect((await ask('stock/7?unit=kg')).body).toEqual({ id: 7, unit: 'kg', key: 'read-7-locks' });
    expect(await post('stock', [{ sku: 'apple', units: 1 }])).toMatchObject({ status: 202, body: { added: 1, key: 'add-locks' } });
    expect(acquired).toEqual(['read-7-locks', 'add-locks']);
  });
});
