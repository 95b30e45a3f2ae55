package providers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"sync"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

// ErrPicture reports a picture that cannot be taken: too large, damaged, or of a
// form that is not known. Its text is for people.
var ErrPicture = errors.New("providers: bad picture")

// PictureLimits bound pictures.
type PictureLimits struct {
	// Bytes of the file and pixels that it may have; both are checked before
	// anything is unpacked.
	Bytes, Pixels int64
	// Edge is the longest that models get.
	Edge int
}

// pictureForms are the forms that are known, by their media type.
var pictureForms = map[string]struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}{
	"image/png":  {png.DecodeConfig, png.Decode},
	"image/jpeg": {jpeg.DecodeConfig, jpeg.Decode},
	"image/gif":  {gif.DecodeConfig, gif.Decode},
	"image/webp": {webp.DecodeConfig, webp.Decode},
}

// CheckPicture reads the head of a picture and gives its true media type, which
// is that of its bytes whatever was said of it.
func CheckPicture(data []byte, l PictureLimits) (mediaType string, err error) {
	mediaType, _, err = pictureHead(data, l)
	return mediaType, err
}

func pictureHead(data []byte, l PictureLimits) (string, image.Config, error) {
	if int64(len(data)) > l.Bytes {
		return "", image.Config{}, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrPicture, len(data), l.Bytes)
	}
	mediaType := http.DetectContentType(data)
	form, ok := pictureForms[mediaType]
	if !ok {
		return "", image.Config{}, fmt.Errorf("%w: neither PNG, JPEG, GIF nor WebP", ErrPicture)
	}
	c, err := form.config(bytes.NewReader(data))
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return "", image.Config{}, fmt.Errorf("%w: its head cannot be read", ErrPicture)
	}
	if int64(c.Width) > l.Pixels/int64(c.Height) {
		return "", image.Config{}, fmt.Errorf("%w: %d x %d pixels, at most %d are taken", ErrPicture, c.Width, c.Height, l.Pixels)
	}
	return mediaType, c, nil
}

// unpacking lets one picture be unpacked at a time: it takes four bytes a pixel.
var unpacking sync.Mutex

// FitPicture gives a picture as a model gets it: as it is where it fits, else
// made smaller, upright, as JPEG, or as PNG where it has transparent parts. Of a
// moving picture that has to be made smaller the first frame is left.
func FitPicture(data []byte, l PictureLimits) (out []byte, mediaType string, err error) {
	mediaType, c, err := pictureHead(data, l)
	if err != nil {
		return nil, "", err
	}
	if max(c.Width, c.Height) <= l.Edge {
		return data, mediaType, nil
	}
	unpacking.Lock()
	defer unpacking.Unlock()
	whole, err := pictureForms[mediaType].decode(bytes.NewReader(data))
	if err != nil {
		return nil, "", fmt.Errorf("%w: it cannot be unpacked", ErrPicture)
	}
	small := shrink(whole, l.Edge)
	if mediaType == "image/jpeg" {
		small = upright(small, orientation(data))
	}
	var b bytes.Buffer
	if small.Opaque() {
		err, mediaType = jpeg.Encode(&b, small, &jpeg.Options{Quality: 88}), "image/jpeg"
	} else {
		err, mediaType = png.Encode(&b, small), "image/png"
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w: it cannot be made smaller", ErrPicture)
	}
	return b.Bytes(), mediaType, nil
}

// shrink keeps the shape; a side is never less than one pixel.
func shrink(whole image.Image, edge int) *image.RGBA {
	w, h := whole.Bounds().Dx(), whole.Bounds().Dy()
	if w >= h {
		w, h = edge, max(1, (h*edge+w/2)/w)
	} else {
		w, h = max(1, (w*edge+h/2)/h), edge
	}
	small := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.BiLinear.Scale(small, small.Bounds(), whole, whole.Bounds(), draw.Src, nil)
	return small
}

// upright turns and mirrors a picture as an EXIF orientation, 1 to 8, says.
func upright(p *image.RGBA, o int) *image.RGBA {
	if o < 2 || o > 8 {
		return p
	}
	w, h := p.Bounds().Dx(), p.Bounds().Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if o >= 5 {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			var tx, ty int
			switch o {
			case 2:
				tx, ty = w-1-x, y
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				tx, ty = x, h-1-y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			copy(out.Pix[out.PixOffset(tx, ty):][:4], p.Pix[p.PixOffset(x, y):][:4])
		}
	}
	return out
}

// orientation reads how a camera was held from a JPEG's EXIF part; 1 where it
// does not say.
func orientation(data []byte) int {
	const plain = 1
	for at := 2; at+4 <= len(data) && data[at] == 0xFF; {
		kind, size := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if kind == 0xDA || size < 2 || at+2+size > len(data) {
			return plain
		}
		if body := data[at+4 : at+2+size]; kind == 0xE1 && bytes.HasPrefix(body, []byte("Exif\x00\x00")) {
			return tiffOrientation(body[6:])
		}
		at += 2 + size
	}
	return plain
}

func tiffOrientation(t []byte) int {
	const plain, tag = 1, 0x0112
	if len(t) < 8 {
		return plain
	}
	var order binary.ByteOrder = binary.BigEndian
	if t[0] == 'I' {
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(t[4:]))
	if at+2 > int64(len(t)) {
		return plain
	}
	n := int64(order.Uint16(t[at:]))
	for i := range n {
		e := at + 2 + i*12
		if e+12 > int64(len(t)) {
			return plain
		}
		if order.Uint16(t[e:]) == tag {
			return int(order.Uint16(t[e+8:]))
		}
	}
	return plain
}
