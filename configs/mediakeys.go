package configs

import "errors"

// The keys of pictures and sound that come in.
const (
	KeyImageMaxBytes  = "core.input_processing.image.max_bytes"
	KeyImageMaxPixels = "core.input_processing.image.max_pixels"
	KeyImageMaxEdge   = "core.input_processing.image.max_edge"
	KeyImageSource    = "core.input_processing.image.fallback_provider"
	KeyAudioMaxBytes  = "core.input_processing.audio.max_bytes"
	KeyAudioSource    = "core.input_processing.audio.fallback_provider"
)

// MediaPrefix is what the names of these keys start with.
const MediaPrefix = "core.input_processing."

func mediaKeys() []Key {
	helper := func(name, english, chinese, what, flag string) Key {
		return Key{
			Name: name, Type: TypeString, Check: checkSourceName,
			English: english, Chinese: chinese, Category: CategoryModels, Apply: Live,
			Description: "The model source that " + what + " for models that cannot. Unset means the first source whose " + flag + " is on; where there is none, the model is told that it is not shown the content.",
		}
	}
	return []Key{
		{
			Name: KeyImageMaxBytes, Type: TypeSize, Default: "20MiB", Min: "1KiB", Max: "256MiB",
			English: "Largest picture file", Chinese: "图片大小上限", Category: CategoryModels, Apply: Live,
			Description: "The largest picture file that is taken; a larger one is refused.",
		},
		{
			Name: KeyImageMaxPixels, Type: TypeInt, Unit: "pixels", Default: "50000000", Min: "10000", Max: "400000000", Step: "1000000",
			English: "Largest picture", Chinese: "图片像素上限", Category: CategoryModels, Apply: Live,
			Description: "The most pixels that a picture may have, read from its head before anything is unpacked; a larger one is refused.",
		},
		{
			Name: KeyImageMaxEdge, Type: TypeInt, Unit: "pixels", Default: "2048", Min: "64", Max: "16384", Step: "128",
			English: "Longest edge", Chinese: "图片最长边", Category: CategoryModels, Apply: Live,
			Description: "The longest edge of a picture as models get it: larger ones are made smaller. What is stored stays as it came.",
		},
		helper(KeyImageSource, "Source that sees", "图像识别来源", "describes pictures", "vision"),
		{
			Name: KeyAudioMaxBytes, Type: TypeSize, Default: "25MiB", Min: "1KiB", Max: "256MiB",
			English: "Largest sound file", Chinese: "音频大小上限", Category: CategoryModels, Apply: Live,
			Description: "The largest sound file that is taken; a larger one is refused.",
		},
		helper(KeyAudioSource, "Source that hears", "语音识别来源", "writes down speech", "audio"),
	}
}

func checkSourceName(text string) error {
	if !instanceForm.MatchString(text) {
		return errors.New("not the name of a source: " + instanceForms)
	}
	return nil
}
