package providers_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
)

var limits = providers.PictureLimits{Bytes: 1 << 20, Pixels: 1_000_000, Edge: 100}

// canvas is red in its upper left quarter and blue elsewhere.
func canvas(w, h int, alpha uint8) *image.NRGBA {
	p := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{B: 255, A: 255}
			if x < w/2 && y < h/2 {
				c = color.NRGBA{R: 255, A: alpha}
			}
			p.SetNRGBA(x, y, c)
		}
	}
	return p
}

func asPNG(t testing.TB, p image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// asJPEG writes a JPEG whose EXIF part, in either byte order, names an orientation.
func asJPEG(t testing.TB, p image.Image, orientation uint16, order binary.AppendByteOrder) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, p, nil); err != nil {
		t.Fatal(err)
	}
	if orientation == 0 {
		return b.Bytes()
	}
	tiff := []byte("MM")
	if order == binary.AppendByteOrder(binary.LittleEndian) {
		tiff = []byte("II")
	}
	tiff = order.AppendUint32(order.AppendUint16(tiff, 42), 8)
	tiff = order.AppendUint16(tiff, 2)
	tiff = append(tiff, make([]byte, 12)...) // another entry first
	tiff = order.AppendUint16(order.AppendUint16(tiff, 0x0112), 3)
	tiff = order.AppendUint16(order.AppendUint32(tiff, 1), orientation)
	tiff = append(tiff, 0, 0, 0, 0, 0, 0)
	body := append([]byte("Exif\x00\x00"), tiff...)
	head := binary.BigEndian.AppendUint16([]byte{0xFF, 0xD8, 0xFF, 0xE1}, uint16(len(body)+2))
	return append(append(head, body...), b.Bytes()[2:]...)
}

func TestPictures(t *testing.T) {
	small, large := asPNG(t, canvas(80, 40, 255)), asPNG(t, canvas(400, 200, 255))
	if out, kind, err := providers.FitPicture(small, limits); err != nil || kind != "image/png" || !bytes.Equal(out, small) {
		t.Errorf("what fits is changed: %s, %v", kind, err)
	}
	for name, c := range map[string]struct {
		data []byte
		kind string
		w, h int
	}{
		"opaque":      {large, "image/jpeg", 100, 50},
		"transparent": {asPNG(t, canvas(200, 400, 0)), "image/png", 50, 100},
		"jpeg":        {asJPEG(t, canvas(400, 200, 255), 0, binary.BigEndian), "image/jpeg", 100, 50},
		"thin":        {asPNG(t, canvas(5000, 2, 255)), "image/jpeg", 100, 1},
		"gif":         {asGIF(t, 300, 300), "image/jpeg", 100, 100},
	} {
		out, kind, err := providers.FitPicture(c.data, limits)
		if err != nil || kind != c.kind {
			t.Errorf("%s: %s, %v", name, kind, err)
			continue
		}
		got, _, err := image.Decode(bytes.NewReader(out))
		if err != nil || got.Bounds().Dx() != c.w || got.Bounds().Dy() != c.h {
			t.Errorf("%s: %v, %v", name, got.Bounds(), err)
		}
	}
	webp, err := base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	if err != nil {
		t.Fatal(err)
	}
	if kind, err := providers.CheckPicture(webp, limits); err != nil || kind != "image/webp" {
		t.Errorf("webp: %s, %v", kind, err)
	}
}

func asGIF(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, canvas(w, h, 255), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The head of a picture tells how much there would be to unpack: 60,000 x 60,000
// pixels in a few bytes are refused by it.
func TestBadPictures(t *testing.T) {
	bomb := asPNG(t, canvas(10, 10, 255))
	binary.BigEndian.PutUint32(bomb[16:], 60_000)
	binary.BigEndian.PutUint32(bomb[20:], 60_000)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	cut := asPNG(t, canvas(300, 300, 255))
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"bomb":     {bomb, "60000 x 60000 pixels"},
		"large":    {make([]byte, 1<<20+1), "bytes, at most"},
		"nothing":  {nil, "neither PNG"},
		"text":     {[]byte("<svg/>"), "neither PNG"},
		"head cut": {cut[:20], "head cannot be read"},
		"body cut": {cut[:len(cut)/2], "cannot be unpacked"},
	} {
		_, _, err := providers.FitPicture(c.data, limits)
		if !errors.Is(err, providers.ErrPicture) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A picture that is made anew has lost what its camera said of its place, so it
// is turned: red comes to stand upper left in each of the eight.
func TestUpright(t *testing.T) {
	// Where red is stored for each orientation: x and y as fractions.
	stored := map[uint16][2]int{1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {0, 1}, 7: {1, 1}, 8: {1, 0}}
	for o, at := range stored {
		for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
			const w, h = 240, 120
			p := canvas(w, h, 255)
			for y := range h {
				for x := range w {
					c := color.NRGBA{B: 255, A: 255}
					if x/(w/2) == at[0] && y/(h/2) == at[1] {
						c = color.NRGBA{R: 255, A: 255}
					}
					p.SetNRGBA(x, y, c)
				}
			}
			out, _, err := providers.FitPicture(asJPEG(t, p, o, order), limits)
			if err != nil {
				t.Fatal(err)
			}
			got, err := jpeg.Decode(bytes.NewReader(out))
			if err != nil {
				t.Fatal(err)
			}
			if wide := got.Bounds().Dx() > got.Bounds().Dy(); wide != (o < 5) {
				t.Errorf("orientation %d: %v", o, got.Bounds())
			}
			r, _, b, _ := got.At(got.Bounds().Dx()/4, got.Bounds().Dy()/4).RGBA()
			if r < b {
				t.Errorf("orientation %d: red is not upper left", o)
			}
		}
	}
}

func FuzzPicture(f *testing.F) {
	f.Add(asPNG(f, canvas(20, 20, 0)))
	f.Add(asJPEG(f, canvas(20, 10, 255), 6, binary.LittleEndian))
	f.Add(asGIF(f, 9, 9))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := providers.PictureLimits{Bytes: 1 << 16, Pixels: 1 << 16, Edge: 8}
		out, kind, err := providers.FitPicture(data, l)
		if err != nil {
			if !errors.Is(err, providers.ErrPicture) {
				t.Errorf("%v", err)
			}
			return
		}
		if again, err := providers.CheckPicture(out, providers.PictureLimits{Bytes: 1 << 20, Pixels: 1 << 16}); err != nil || again != kind {
			t.Errorf("%s became %s, %v", kind, again, err)
		}
	})
}

// Media goes to a source that takes it, smaller where it must be. Any other
// source is told in words what it is not shown, and keeps the tools that help.
func TestMediaToTheModel(t *testing.T) {
	engine, err := lua.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := providertest.Start("", providertest.Script{Steps: []providertest.Step{{Text: []string{"a cat"}}}})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string][]byte{"blk_media_1": asPNG(t, canvas(400, 200, 255)), "blk_media_2": []byte("no picture")}
	loads := 0
	client := providers.NewClient(providers.Options{
		Adapters: engine, Pictures: func() providers.PictureLimits { return limits },
		Media: func(_ context.Context, ref *messages.PayloadRef) ([]byte, error) {
			loads++
			return stored[ref.GetId()], nil
		},
	})
	t.Cleanup(func() {
		client.Close()
		v.Close()
		engine.Close()
	})
	ask := func(src providers.Source, id string) string {
		t.Helper()
		req := providertest.Ask("what is this?")
		req.Messages[len(req.Messages)-1].Parts = append(req.Messages[len(req.Messages)-1].Parts,
			&messages.Part{Content: &messages.Part_Payload{Payload: &messages.PayloadRef{Id: id, MediaType: "image/png", Size: 5}}})
		for _, name := range []string{"files_list", providers.ToolDescribeImage, providers.ToolOCRImage, providers.ToolTranscribeAudio} {
			req.Tools = append(req.Tools, &messages.ToolDef{Name: name, ParametersJson: []byte(`{"type":"object"}`)})
		}
		if _, err := client.Stream(t.Context(), src, req, providers.Hooks{}); err != nil {
			t.Fatal(err)
		}
		all := v.Requests()
		return string(all[len(all)-1].Body)
	}
	blind := providers.Source{Name: "s", Adapter: "openai", BaseURL: v.URL(), Model: "m"}
	seeing := blind
	seeing.Vision = true
	for range 2 {
		body := ask(seeing, "blk_media_1")
		if !strings.Contains(body, "data:image/jpeg;base64,") || strings.Contains(body, "describe_image") || !strings.Contains(body, "files_list") {
			t.Errorf("a source that sees: %.300s", body)
		}
	}
	if loads != 1 {
		t.Errorf("the picture was read %d times for two rounds", loads)
	}
	body := ask(blind, "blk_media_1")
	if strings.Contains(body, "base64") || !strings.Contains(body, "blk_media_1, image/png") || !strings.Contains(body, "describe_image") || strings.Contains(body, "transcribe_audio") {
		t.Errorf("a source that does not see: %.300s", body)
	}
	if body = ask(seeing, "blk_media_2"); strings.Contains(body, "base64") || !strings.Contains(body, "not shown to this model") {
		t.Errorf("a bad picture: %.300s", body)
	}
	none := blind
	none.NoTools = true
	if body = ask(none, "blk_media_1"); strings.Contains(body, "files_list") {
		t.Errorf("a source without tools: %.300s", body)
	}
}
