"""What a class's tiny config needs beyond hf_config.py's rule and its adapter.

TINY: {class: {dotted key: value}}. Most say a size that the rule does not know
(experts, towers of other libraries), or what the class has no default for.
"""

import hf_config
import hf_patch_grid

_MROPE = hf_patch_grid.PatchGrid.TINY
_FOUR_PATCHES = 4 * hf_config.TINY_WIDTH
_MINICPM = {"image_token_id": 3, "insert_layer_id": 0,
            "vision_config.insert_layer_id": 0}
_SAM = {"vision_config.sam_config.output_channels": 32,
        "vision_config.sam_config.mlp_dim": 112,
        "vision_config.sam_config.image_size": 4 * hf_config.TINY_IMAGE,
        "vision_config.sam_config.downsample_channels":
            [32, hf_config.TINY_WIDTH]}
_INKLING = {"text_config.swa_num_attention_heads": hf_config.TINY_HEADS,
            "text_config.swa_num_key_value_heads": 2,
            "text_config.sliding_window_size": 8,
            "text_config.rel_extent": 16,
            "text_config.n_routed_experts": 4,
            "text_config.num_experts_per_tok": 2}
_OMNI = {**_MROPE, "vision_start_token_id": 6, "audio_start_token_id": 7}
TINY = {
    "AriaForConditionalGeneration": {"projector_patch_to_query_dict": {16: 4}},
    "Blip2ForConditionalGeneration": {"image_token_index": 3,
                                      "num_query_tokens": 4},
    "CohereCompassForConditionalGeneration": {
        "text_config.layer_types": ["sliding_attention", "full_attention"],
        "text_config.rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4,
                                  "mrope_section": [2, 3, 3]},
            "full_attention": None}},
    "Cosmos3EdgeForConditionalGeneration": _MROPE,
    "DeepseekOcr2ForConditionalGeneration": {
        **_SAM, "text_config.num_experts_per_tok": 2,
        "text_config.mlp_layer_types": ["dense", "sparse"],
        "text_config.n_routed_experts": 4,
        "text_config.max_position_embeddings": 256},
    "Dots3NoteForConditionalGeneration": {"text_config.head_dim": 32},
    "Ernie4_5_VLMoeForConditionalGeneration": {
        "text_config.rope_parameters.mrope_section": [3, 3, 2]},
    "FastVlmForConditionalGeneration": {
        "vision_config.model_args": {
            "inference_mode": True, "layers": [1, 1, 1, 1, 1],
            "embed_dims": [16, 16, 32, 32, 32],
            "pretrained_cfg_overlay": {"input_size": [3, 128, 128]}}},
    "Gemma3nForConditionalGeneration": {
        "image_token_id": 129, "vision_soft_tokens_per_image": 4,
        "text_config.vocab_size": 144, "text_config.intermediate_size": 112,
        "text_config.num_hidden_layers": 4,
        "text_config.num_kv_shared_layers": 2,
        "text_config.activation_sparsity_pattern": [0.95, 0.0, 0.95, 0.0],
        "text_config.hidden_size_per_layer_input": 16,
        "text_config.laurel_rank": 8,
        "vision_config.hidden_size": 2048, "vision_config.vocab_size": 8,
        "vision_config.vocab_offset": 128,
        "vision_config.model_args": {
            "channel_multiplier": 0.0625, "msfa_output_resolution": 2,
            "pretrained_cfg_overlay": {"input_size": [3, 64, 64]}},
        "audio_config.vocab_size": 8, "audio_config.vocab_offset": 136},
    "Glm46VForConditionalGeneration": _MROPE,
    "Glm4vForConditionalGeneration": _MROPE,
    "Glm4vMoeForConditionalGeneration": {  # rotates half of each head
        "text_config.rope_parameters.mrope_section": [1, 1, 2]},
    "Glm5NextForConditionalGeneration": {
        "text_config.qk_rope_head_dim": 0, "text_config.head_dim": 0,
        "text_config.v_head_dim": 16, "text_config.qk_nope_head_dim": 16,
        "text_config.kv_lora_rank": 32, "text_config.q_lora_rank": 32,
        "text_config.n_routed_experts": 4,
        "text_config.num_experts_per_tok": 2,
        "text_config.mlp_layer_types": ["dense", "sparse"],
        "text_config.layer_types": ["linear_attention", "indexed_attention"],
        "text_config.indexer_types": ["full", "full"],
        "text_config.index_topk": 8, "text_config.index_kpool": 2,
        # Each of the indexer's scores sums over all heads, after a ReLU: with
        # few heads many are zero, and which of equals topk takes is not said.
        "text_config.index_head_dim": 16, "text_config.index_n_heads": 32,
        "text_config.linear_head_dim": 16, "text_config.linear_num_heads": 4},
    "HunYuanVLForConditionalGeneration": {
        **_MROPE, "text_config.head_dim": 16,
        "vision_config.max_image_size": 2 * hf_config.TINY_IMAGE},
    "Inkling2ForConditionalGeneration": {
        **_INKLING, "text_config.unpadded_vocab_size": hf_config.TINY_VOCAB,
        "text_config.n_layers_per_attn_res_block": 1,
        "vision_config.projection_hidden_dim": hf_config.TINY_WIDTH},
    "InklingForConditionalGeneration": {
        **_INKLING, "vision_config.num_hidden_layers": 4},
    "InstructBlipForConditionalGeneration": {"image_token_index": 3,
                                             "num_query_tokens": 4},
    "Kosmos2_5ForConditionalGeneration": {
        "vision_config.patch_embed_hidden_size": 3 * hf_config.TINY_PATCH**2},
    "Lfm2VlForConditionalGeneration": {
        "text_config.layer_types": ["conv", "full_attention"]},
    "MiniCPMOcrForConditionalGeneration": _MINICPM,
    "MiniCPMV4_6ForConditionalGeneration": _MINICPM,
    "MiniCPMV4_7ForConditionalGeneration": _MINICPM,
    "MuseGlimmerForConditionalGeneration": {"out_hidden_size": _FOUR_PATCHES},
    "MuseSparkForConditionalGeneration": {"out_hidden_size": _FOUR_PATCHES},
    "NemotronH_Omni_Reasoning_V3": {
        "image_token_id": 3, "vision_hidden_size": hf_config.TINY_WIDTH},
    "PaddleOCRVLForConditionalGeneration": _MROPE,
    "PerceptionLMForConditionalGeneration": {
        "projector_pooling_ratio": 2,
        "vision_config.architecture": "vit_pe_core_large_patch14_336",
        "vision_config.model_args": {
            "embed_dim": hf_config.TINY_WIDTH, "depth": hf_config.TINY_LAYERS,
            "num_heads": hf_config.TINY_HEADS, "global_pool": "",
            "use_post_transformer_norm": False, "init_values": 0.1,
            "patch_size": hf_config.TINY_PATCH,
            "img_size": [hf_config.TINY_IMAGE] * 2,
            "ref_feat_shape": [4, 4]}},
    "PPFormulaNetForConditionalGeneration": {
        "vision_config.output_channels": 32, "vision_config.mlp_dim": 112,
        "vision_config.image_size": 4 * hf_config.TINY_IMAGE,
        "vision_config.post_conv_in_channels": 32,
        "vision_config.post_conv_mid_channels": 32,
        "vision_config.post_conv_out_channels": hf_config.TINY_WIDTH,
        "vision_config.decoder_hidden_size": hf_config.TINY_WIDTH},
    "Pix2StructForConditionalGeneration": {
        "vision_config.patch_embed_hidden_size": 3 * hf_config.TINY_PATCH**2},
    "Qwen2_5OmniThinkerForConditionalGeneration": _OMNI,
    "Qwen3OmniMoeThinkerForConditionalGeneration": _OMNI,
    "Step3p7ForConditionalGeneration": {
        "vision_config.image_size": 2 * hf_config.TINY_IMAGE,
        "text_config.sliding_window": 8,
        "text_config.num_local_experts": 4,
        "text_config.num_experts_per_tok": 2,
        "text_config.share_expert_dim": 48,
        "text_config.num_sliding_attention_heads": 4,
        "text_config.layer_types": ["sliding_attention", "full_attention"],
        "text_config.mlp_layer_types": ["dense", "sparse"]},
    "UnlimitedOcrForConditionalGeneration": {
        **_SAM, "text_config.num_experts_per_tok": 2,
        "text_config.mlp_layer_types": ["dense", "sparse"],
        "text_config.n_routed_experts": 4},
    "VipLlavaForConditionalGeneration": {"vision_feature_layers": [-2, -1]},
}
