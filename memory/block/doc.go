// Package block stores blocks and their payloads.
//
// A payload is bytes with a media type, named by its content: the same content
// has the same name and is kept once. A block is one occurrence of a payload with
// provenance of its own; the payload counts the blocks that hold it and goes with
// the last one.
//
// # Names
//
//	blk_src_<hex>    text: SHA-256 of the bytes
//	blk_media_<hex>  anything else: SHA-256 of media type, zero byte, bytes
//
// with the first 160 bits in lower-case hex. The whole SHA-256 of the bytes
// stands in the record and is checked at every read.
//
// # Keys
//
//	p <payload id>                     head: messages.PayloadRecord
//	p <payload id> 00 <number, 4 BE>   chunk of at most ChunkSize bytes
//	b <block id>                       messages.BlockRecord, content left out
//
// # Writing
//
// Put and Delete join the transaction of their caller. A payload too large for
// that (media) is stored before by PutPayload in transactions of its own, the
// head last: a head without blocks is complete and may be removed by Sweep.
//
// Readers work on any transaction and may run concurrently.
package block
