package beetle

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// encode makes MessagePack of what encoding/json makes JSON of. Requests with bytes, which JSON has not, are not covered.
func encode(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return nil, err
	}
	return appendValue(nil, plain)
}

func appendValue(out []byte, value any) ([]byte, error) {
	var err error
	switch v := value.(type) {
	case nil:
		return append(out, 0xc0), nil
	case bool:
		if v {
			return append(out, 0xc3), nil
		}
		return append(out, 0xc2), nil
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return binary.BigEndian.AppendUint64(append(out, 0xd3), uint64(whole)), nil
		}
		real, err := v.Float64()
		return binary.BigEndian.AppendUint64(append(out, 0xcb), math.Float64bits(real)), err
	case string:
		return append(appendLength(append(out, 0xdb), len(v)), v...), nil
	case []any:
		out = appendLength(append(out, 0xdd), len(v))
		for _, each := range v {
			if out, err = appendValue(out, each); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		out = appendLength(append(out, 0xdf), len(v))
		for key, each := range v {
			out = append(appendLength(append(out, 0xdb), len(key)), key...)
			if out, err = appendValue(out, each); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func appendLength(out []byte, length int) []byte {
	return binary.BigEndian.AppendUint32(out, uint32(length))
}

// decode reads one value; it returns as soon as the value is whole, however many pieces a large frame comes in.
func decode(in *bufio.Reader) (any, error) {
	tag, err := in.ReadByte()
	if err != nil {
		return nil, err
	}
	switch {
	case tag < 0x80:
		return int64(tag), nil
	case tag < 0x90:
		return decodeMap(in, uint64(tag&15))
	case tag < 0xa0:
		return decodeList(in, uint64(tag&15))
	case tag < 0xc0:
		return decodeText(in, uint64(tag&31))
	case tag >= 0xe0:
		return int64(int8(tag)), nil
	}
	switch tag {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return tag == 0xc3, nil
	}
	size, known := sizes[tag]
	if !known {
		return nil, fmt.Errorf("an answer holds the MessagePack tag %#x", tag)
	}
	var wide [8]byte
	if _, err := io.ReadFull(in, wide[8-size:]); err != nil {
		return nil, err
	}
	number := binary.BigEndian.Uint64(wide[:])
	switch tag {
	case 0xc4, 0xc5, 0xc6:
		return decodeBytes(in, number)
	case 0xd9, 0xda, 0xdb:
		return decodeText(in, number)
	case 0xdc, 0xdd:
		return decodeList(in, number)
	case 0xde, 0xdf:
		return decodeMap(in, number)
	case 0xca:
		return math.Float32frombits(uint32(number)), nil
	case 0xcb:
		return math.Float64frombits(number), nil
	case 0xd0, 0xd1, 0xd2, 0xd3:
		shift := 64 - 8*size
		return int64(number<<shift) >> shift, nil
	}
	return number, nil
}

// sizes are the bytes of the number, or of the length, that follows a tag.
var sizes = map[byte]int{
	0xc4: 1, 0xc5: 2, 0xc6: 4, 0xca: 4, 0xcb: 8, 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8, 0xd0: 1, 0xd1: 2, 0xd2: 4,
	0xd3: 8, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4,
}

func decodeBytes(in *bufio.Reader, length uint64) ([]byte, error) {
	found := make([]byte, length)
	_, err := io.ReadFull(in, found)
	return found, err
}

func decodeText(in *bufio.Reader, length uint64) (string, error) {
	found, err := decodeBytes(in, length)
	return string(found), err
}

func decodeList(in *bufio.Reader, length uint64) ([]any, error) {
	found := make([]any, length)
	for place := range found {
		each, err := decode(in)
		if err != nil {
			return nil, err
		}
		found[place] = each
	}
	return found, nil
}

func decodeMap(in *bufio.Reader, length uint64) (map[string]any, error) {
	found := make(map[string]any, length)
	for ; length > 0; length-- {
		key, err := decode(in)
		if err != nil {
			return nil, err
		}
		name, is := key.(string)
		if !is {
			return nil, fmt.Errorf("an answer has the key %v", key)
		}
		if found[name], err = decode(in); err != nil {
			return nil, err
		}
	}
	return found, nil
}
